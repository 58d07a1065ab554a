// Runs the tests of the engines' SQL against the images that a cluster runs, in containers
// (test/support/postgresql/engine.ts). Tests of client tools are not repeated.
import '../faults/engine-crash/postgresql.test.ts'
import '../servers/postgresql/drop.test.ts'
import '../servers/postgresql/isolation/administrator.test.ts'
import '../servers/postgresql/isolation/files.test.ts'
import '../servers/postgresql/isolation/leftovers.test.ts'
import '../servers/postgresql/isolation/login.test.ts'
import '../servers/postgresql/isolation/objects.test.ts'
import '../servers/postgresql/isolation/roles.test.ts'
import '../servers/postgresql/isolation/server.test.ts'
import '../servers/postgresql/isolation/sight.test.ts'
import '../servers/postgresql/template.test.ts'
import '../servers/postgresql/postgresql.test.ts'
