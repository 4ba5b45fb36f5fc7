#ifndef PINFOLD_CZSTD_H
#define PINFOLD_CZSTD_H
#include <zstd.h>
#include <zstd_errors.h>
#endif
