#pragma once

// The users and groups of the machine, wherever it gets them from (nsswitch.conf(5)).
#include <grp.h>
#include <pwd.h>
