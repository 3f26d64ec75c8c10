#include "base/filesystem.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

/* The numbers by which statfs() tells file systems apart, of those whose files other hosts may
 * change: from linux/magic.h, the kernel's sources, and their makers. */
static const struct {
    uint32_t magic;
    const char *name;
} networks[] = {
    {0x00006969, "NFS"},
    {0x0000517b, "SMB"},
    {0xff534d42, "CIFS"},
    {0xfe534d42, "SMB 2 and 3"},
    {0x0000564c, "NCP"},
    {0x0bd00bd0, "Lustre"},
    {0x47504653, "GPFS"},
    {0x19830326, "BeeGFS"},
    {0x00c36400, "Ceph"},
    {0x5346414f, "AFS (OpenAFS)"},
    {0x6b414653, "AFS (kernel)"},
    {0x73757245, "Coda"},
    {0x01021997, "9p"},
    {0x65735546, "FUSE: sshfs, GlusterFS, virtiofs, …"},
    {0x20030528, "OrangeFS, PVFS2"},
    {0x01161970, "GFS2"},
    {0x7461636f, "OCFS2"},
    {0xaad7aaea, "PanFS"},
    {0xbeefdead, "StorNext"},
    {0x013111a8, "IBRIX"},
    {0xbacbacbc, "VMware's shared folders"},
    {0x786f4256, "VirtualBox's shared folders"},
    {0x7c7c6673, "Parallels' shared folders"},
};

bool filesystem_is_network(const char *path) {
    struct statfs status;
    const char *told = getenv("DML_FILESYSTEM");
    if (told && (!strcmp(told, "network") || !strcmp(told, "local")))
        return *told == 'n';
    if (statfs(path, &status))
        return false;
    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++)
        if ((uint32_t)status.f_type == networks[i].magic)
            return true;
    return false;
}
