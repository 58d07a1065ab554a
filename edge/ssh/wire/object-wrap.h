// Included before the sources of ssh2's native ciphers when they are compiled. Since 24.19 the `ObjectWrap` of Node's headers registers each object for the end of
// the process, and takes that back when the object is collected, which aborts the process (nodejs/node issue 65446, mscdex/ssh2 issue 1511). Without both, it is
// as it was before: what lives at the end of the process ends with it.
#include <node.h>

#define AddEnvironmentCleanupHook(isolate, hook, argument) static_cast<void>(0)
#define RemoveEnvironmentCleanupHook(isolate, hook, argument) static_cast<void>(0)
