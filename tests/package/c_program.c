/* What the guide to the C interface shows, in a program of C alone. */
#include <stdio.h>

const char* check_c_interface_from_c(void);

int main(void) {
  const char* wrong = check_c_interface_from_c();
  if (wrong != NULL) printf("%s\n", wrong);
  return wrong != NULL;
}
