// What the engines' SQL promises, put to the images that a cluster runs: the very clauses that stand beside it, on servers in containers
// (test/support/postgresql/engine.ts). Those of a tenant's tools are about clients, and are not repeated.
import '../../operator/engines/postgresql/crash.test.ts'
import '../../operator/engines/postgresql/drop.test.ts'
import '../../operator/engines/postgresql/isolation/administrator.test.ts'
import '../../operator/engines/postgresql/isolation/files.test.ts'
import '../../operator/engines/postgresql/isolation/leftovers.test.ts'
import '../../operator/engines/postgresql/isolation/login.test.ts'
import '../../operator/engines/postgresql/isolation/objects.test.ts'
import '../../operator/engines/postgresql/isolation/roles.test.ts'
import '../../operator/engines/postgresql/isolation/server.test.ts'
import '../../operator/engines/postgresql/isolation/sight.test.ts'
import '../../operator/engines/postgresql/template.test.ts'
import '../../operator/engines/postgresql/postgresql.test.ts'
