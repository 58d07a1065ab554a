/**
 * Journal of cluster mode, in PostgreSQL. Three kinds of process use it: edges write requests and connections; apiservers read
 * everything and write audit entries; the operator owns the schema, and writes audit entries and the ends of lost sessions. Edges
 * and apiservers write through journal/spool.ts.
 */
export { type JournalLogin, type LoginSource, loginFromDirectory } from './postgresql/login.ts'
export { createJournalOwner, type JournalOwner, type JournalOwnerDeps } from './postgresql/owner.ts'
export { createPostgresqlReader, type PostgresqlReader, type PostgresqlReaderDeps } from './postgresql/reader.ts'
export { createPostgresqlWriter, type PostgresqlWriterDeps } from './postgresql/writer.ts'
