/**
 * Journal of cluster mode, in PostgreSQL. It has three roles: edges write requests and connections, apiservers read and write
 * audit entries, and the operator owns the schema. Edges and apiservers write through journal/spool.ts.
 */
export { type JournalLogin, type LoginSource, loginFromDirectory } from './postgresql/login.ts'
export { createJournalOwner, type JournalOwner, type JournalOwnerDeps } from './postgresql/owner.ts'
export { createPostgresqlReader, type PostgresqlReader, type PostgresqlReaderDeps } from './postgresql/reader.ts'
export { createPostgresqlWriter, type PostgresqlWriterDeps } from './postgresql/writer.ts'
