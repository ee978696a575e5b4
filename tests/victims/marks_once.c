/* Asks for a bundle, no more. */
#include "marks.h"

int main(void) { mark("here"); }
