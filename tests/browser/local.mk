# The page in a headless Chromium; skipped where there is none.
BROWSER_TESTS = tests/browser/test_page.py tests/browser/test_runs.py
TESTS += $(BROWSER_TESTS)
EXTRA_DIST += $(BROWSER_TESTS) \
	tests/browser/chromium.py \
	tests/browser/mock.py \
	tests/browser/pages.py \
	tests/browser/screenshots.py

# The picture in README.md, from a real job.
screenshots: all
	DML_SOURCE='$(abs_top_srcdir)' DML_BUILD='$(abs_top_builddir)' PYTHONDONTWRITEBYTECODE=1 \
		$(PYTHON) $(srcdir)/tests/browser/screenshots.py $(srcdir)/doc/page.png
.PHONY: screenshots
