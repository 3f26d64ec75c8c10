# The page in a headless Chromium; skipped where there is none.
BROWSER_TESTS = tests/browser/test_page.py
TESTS += $(BROWSER_TESTS)
EXTRA_DIST += $(BROWSER_TESTS) \
	tests/browser/chromium.py \
	tests/browser/mock.py
