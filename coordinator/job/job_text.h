/* Prepares the text of a job file for libconfuse, which counts the lines of comments wrongly,
 * silently ignores some characters, and ends words at a plus. */
#ifndef DML_COORDINATOR_JOB_JOB_TEXT_H
#define DML_COORDINATOR_JOB_JOB_TEXT_H

/* Replaces comments (from # or // to the end of the line, and between slash-star and star-slash) by
 * blanks, and the plus of numbers such as 1e+6 by 0, in place. ERROR_CONFIG, with `file` and line,
 * for a quote, comment or { that is not closed, for a * outside of quotes, and for text outside of
 * comments that is not UTF-8. */
int job_text_prepare(char *text, const char *file);

#endif
