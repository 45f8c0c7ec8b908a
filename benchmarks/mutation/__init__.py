"""Small changes of the code, and the tests that notice them."""
