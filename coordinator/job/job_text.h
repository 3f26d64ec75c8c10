/* Readies the text of a job file for libconfuse, which miscounts the lines of comments and passes
 * over some characters without a word. */
#ifndef DML_COORDINATOR_JOB_JOB_TEXT_H
#define DML_COORDINATOR_JOB_JOB_TEXT_H

/* Blanks comments (# and // to the end of the line, and between slash-star and star-slash) in
 * place. ERROR_CONFIG, with `file` and line, for a quote or comment that is not closed, for a *
 * outside of quotes, and for what is not UTF-8 outside of comments. */
int job_text_prepare(char *text, const char *file);

#endif
