#include "cli/app.h"

int main(int argc, char** argv) {
  return whimbrel::run_app(argc, argv);
}
