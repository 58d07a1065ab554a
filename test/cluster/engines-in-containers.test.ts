// What the engines' SQL promises, put to the images that a cluster runs: the very clauses that stand beside it, on servers in containers
// (test/support/postgresql/engine.ts). Those of a tenant's tools are about clients, and are not repeated.
import '../../operator/engines/postgresql/crash.test.ts'
import '../../operator/engines/postgresql/drop.test.ts'
import '../../operator/engines/postgresql/isolation.test.ts'
import '../../operator/engines/postgresql/template.test.ts'
import '../../operator/engines/postgresql/postgresql.test.ts'
