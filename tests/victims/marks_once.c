/* Requests one bundle. */
#include "marks.h"

int main(void) { mark("here"); }
