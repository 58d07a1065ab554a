import { describe, expect, test } from 'vitest'
import { DENIED, neighbours, rejection } from '../../../support/postgresql/engine.ts'
import { SERIES } from '../../../support/postgresql/postgres.ts'

const REFUSED: readonly (readonly [attempt: string, sql: string, sqlState: string])[] = [
  ['run a program', `COPY (SELECT 1) TO PROGRAM 'id'`, DENIED],
  ['read from a program', `CREATE TABLE program (t text); COPY program FROM PROGRAM 'id'`, DENIED],
  ['write a file', `COPY (SELECT 1) TO '/tmp/mallory'`, DENIED],
  ['copy from a file', `CREATE TABLE file (t text); COPY file FROM '/etc/passwd'`, DENIED],
  ['read a file', `SELECT pg_read_file('/etc/passwd')`, DENIED],
  ['read a binary file', `SELECT pg_read_binary_file('PG_VERSION')`, DENIED],
  ['read the attributes of a file', `SELECT pg_stat_file('PG_VERSION')`, DENIED],
  ['list a directory', `SELECT pg_ls_dir('.')`, DENIED],
  ['list the log', 'SELECT pg_ls_logdir()', DENIED],
  ['list the WAL', 'SELECT pg_ls_waldir()', DENIED],
  ['list temporary files', 'SELECT pg_ls_tmpdir()', DENIED],
  ['export a snapshot, whose files no limit counts', 'SELECT pg_export_snapshot()', DENIED],
  ['list the archive', 'SELECT pg_ls_archive_statusdir()', DENIED],
  ['read the path of the log', 'SELECT pg_current_logfile()', DENIED],
  ['import a large object', `SELECT lo_import('/etc/passwd')`, DENIED],
  ['export a large object', `SELECT lo_export(lo_create(0), '/tmp/mallory')`, DENIED],
  ['load a library', `LOAD 'dblink'`, DENIED],
  ['load any library', `LOAD '/tmp/evil.so'`, DENIED],
  ['make a C function', `CREATE FUNCTION evil() RETURNS int LANGUAGE c AS '/tmp/evil.so', 'evil'`, DENIED],
  ['make an internal function', `CREATE FUNCTION evil(text) RETURNS text LANGUAGE internal AS 'pg_read_file_all'`, DENIED],
  [
    'name a dictionary file outside',
    `CREATE TEXT SEARCH DICTIONARY d (TEMPLATE = simple, STOPWORDS = '../../../etc/passwd')`,
    '22023',
  ],
  ['make a text search template', 'CREATE TEXT SEARCH TEMPLATE t (LEXIZE = dsimple_lexize)', DENIED],
  [
    'make a text search parser',
    'CREATE TEXT SEARCH PARSER p (START = prsd_start, GETTOKEN = prsd_nexttoken, END = prsd_end, LEXTYPES = prsd_lextype)',
    DENIED,
  ],
  ['preload any library', `ALTER ROLE mallory SET session_preload_libraries = 'dblink'`, DENIED],
]

describe.each(SERIES)('PostgreSQL %s: a tenant', (series) => {
  const at = neighbours(series)

  test.each(REFUSED)('cannot %s', async (_, sql, sqlState) => {
    const client = await at.asMallory()
    expect(await rejection(client.query(sql))).toMatchObject({ code: sqlState })
    await client.end()
  })

  test('cannot read a file by an XML entity', async () => {
    const client = await at.asMallory()
    const { rows } = await client.query<{ xml: string }>(
      `SELECT xmlparse(document '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>')::text AS xml`,
    )
    expect(rows[0]?.xml).toContain('<a>&x;</a>')
    await client.end()
  })

  test('cannot load a library at login from outside the server’s plugin directory', async () => {
    const client = await at.asMallory()
    for (const library of ['dblink', '../dblink', '/tmp/evil', '$libdir/dblink', '$libdir/plugins/../dblink']) {
      await client.query(`ALTER ROLE mallory SET local_preload_libraries = '${library}'`)
      expect(await rejection(at.asMallory())).toMatchObject({ severity: 'FATAL' })
    }
    await client.query('ALTER ROLE mallory RESET ALL')
    await client.end()
  })
})
