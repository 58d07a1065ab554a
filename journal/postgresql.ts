/**
 * The journal of the cluster home: PostgreSQL, with a role for those who write requests and connections (edges), one for those who read
 * and write audit entries (apiservers), and one that owns it (the operator). Edges and apiservers write through journal/spool.ts.
 */
export { type JournalLogin, type LoginSource, loginFromDirectory } from './postgresql/login.ts'
export { createJournalOwner, type JournalOwner, type JournalOwnerDeps } from './postgresql/owner.ts'
export { createPostgresqlReader, type PostgresqlReader, type PostgresqlReaderDeps } from './postgresql/reader.ts'
export { createPostgresqlWriter, type PostgresqlWriterDeps } from './postgresql/writer.ts'
