#include "base/error.h"

G_DEFINE_QUARK (pod_error_quark, pod_error)
