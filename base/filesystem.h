/* Whether other hosts may write what lies at a path. */
#ifndef DML_BASE_FILESYSTEM_H
#define DML_BASE_FILESYSTEM_H

#include <stdbool.h>

/* Whether the file or folder lies on a network file system: NFS, SMB, Lustre, GPFS, BeeGFS, Ceph,
 * …, and everything that FUSE serves, since that may be anything. A file system that is not known,
 * or a path that cannot be looked at, counts as local.
 *
 * The environment variable DML_FILESYSTEM, `network` or `local`, decides for all paths: for tests,
 * and for a file system that is not recognised. */
bool filesystem_is_network(const char *path);

#endif
