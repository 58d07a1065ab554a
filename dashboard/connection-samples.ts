/** Parts of a connection to a database. */
export interface ConnectionParts {
  /** Engine and version, such as `mysql-8.0.29`. */
  readonly motor: string
  readonly uri: string
  readonly host: string
  readonly port: number
  readonly user: string
  readonly password: string
  readonly database: string
}

/** Code that connects to a database, to copy. */
export interface Sample {
  /** Client or language. */
  readonly name: string
  readonly text: string
}

/** Returns samples for the clients of an engine. A TLS connection verifies the server by the CA file that the uri names. Pure. */
export function connectionSamples(parts: ConnectionParts): readonly Sample[] {
  const caFile = caFileOf(parts.uri)
  if (parts.motor.startsWith('postgresql-')) return postgresql(parts, caFile)
  if (parts.motor.startsWith('mongodb-')) return mongodb(parts)
  return mysql(parts, caFile)
}

/** Parameters of connection strings that name the file of the CA, by engine: PostgreSQL, MySQL, MongoDB. */
const CA_PARAMETERS = ['sslrootcert', 'ssl-ca', 'tlsCAFile']

/** Returns the file of the CA that a connection string names; undefined for a connection without TLS. */
export function caFileOf(uri: string): string | undefined {
  const query = new URLSearchParams(uri.split('?')[1] ?? '')
  return CA_PARAMETERS.map((name) => query.get(name)).find((file) => file !== null) ?? undefined
}

/** Host and port in a URL. */
const authority = ({ host, port }: ConnectionParts): string => `${host.includes(':') ? `[${host}]` : host}:${port}`
/** Literal of a text in JavaScript, Java and Python. */
const literal = (text: string): string => JSON.stringify(text)
/** One word of a POSIX shell. */
const word = (text: string): string => (/^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`)
const lines = (...all: readonly (string | undefined)[]): string => all.filter((line) => line !== undefined).join('\n')
const query = (parameters: Readonly<Record<string, string>>): string => {
  const text = new URLSearchParams(parameters).toString()
  return text === '' ? '' : `?${text}`
}

function java(url: string, { user, password }: ConnectionParts): string {
  return `Connection connection = DriverManager.getConnection(\n    ${literal(url)},\n    ${literal(user)}, ${literal(password)});`
}

/** Prisma reads the file of the CA relative to the directory of its schema. */
const prismaCa = (caFile: string): string => (caFile.startsWith('/') ? caFile : `../${caFile}`)

function prisma(provider: string, scheme: string, parts: ConnectionParts, parameters: Readonly<Record<string, string>>): string {
  const { user, password, database } = parts
  const at = `${encodeURIComponent(user)}:${encodeURIComponent(password)}@${authority(parts)}/${database}`
  return lines(
    '# .env',
    `DATABASE_URL=${literal(`${scheme}://${at}${query(parameters)}`)}`,
    '',
    '// prisma/schema.prisma',
    'datasource db {',
    `  provider = ${literal(provider)}`,
    '  url      = env("DATABASE_URL")',
    '}',
  )
}

function postgresql(parts: ConnectionParts, caFile: string | undefined): readonly Sample[] {
  const { uri, database } = parts
  const url = `jdbc:postgresql://${authority(parts)}/${database}`
  const tls = caFile === undefined ? {} : { sslmode: 'verify-full', sslrootcert: caFile }
  const ofPrisma = caFile === undefined ? {} : { sslmode: 'require', sslcert: prismaCa(caFile), sslaccept: 'strict' }
  return [
    { name: 'psql', text: `psql ${word(uri)}` },
    {
      name: 'Node',
      text: lines(
        "import pg from 'pg'",
        '',
        `const client = new pg.Client({ connectionString: ${literal(uri)} })`,
        'await client.connect()',
      ),
    },
    { name: 'Python', text: lines('import psycopg', '', `connection = psycopg.connect(${literal(uri)})`) },
    { name: 'JDBC', text: java(url + query(tls), parts) },
    { name: 'Prisma', text: prisma('postgresql', 'postgresql', parts, ofPrisma) },
  ]
}

function mysql(parts: ConnectionParts, caFile: string | undefined): readonly Sample[] {
  const { motor, host, port, user, password, database } = parts
  const isMariaDb = motor.startsWith('mariadb-')
  const verify = isMariaDb ? '--ssl-verify-server-cert' : '--ssl-mode=VERIFY_IDENTITY'
  const command = isMariaDb ? 'mariadb' : 'mysql'
  const flags = [`--host=${host}`, `--port=${port}`, '--protocol=tcp', `--user=${user}`]
  const tlsFlags = caFile === undefined ? [] : [`--ssl-ca=${caFile}`, verify]
  const url = `jdbc:mariadb://${authority(parts)}/${database}`
  // Without TLS a password of MySQL 8 is sent encrypted by the key of the server.
  const ofJdbc = caFile === undefined ? { allowPublicKeyRetrieval: 'true' } : { sslMode: 'verify-full', serverSslCert: caFile }
  const ofPrisma = caFile === undefined ? {} : { sslcert: prismaCa(caFile), sslaccept: 'strict' }
  return [
    { name: command, text: `MYSQL_PWD=${word(password)} ${[command, ...flags, ...tlsFlags, database].map(word).join(' ')}` },
    {
      name: 'Node',
      text: lines(
        caFile === undefined ? undefined : "import { readFileSync } from 'node:fs'",
        "import mysql from 'mysql2/promise'",
        '',
        'const connection = await mysql.createConnection({',
        `  host: ${literal(host)},`,
        `  port: ${port},`,
        `  user: ${literal(user)},`,
        `  password: ${literal(password)},`,
        `  database: ${literal(database)},`,
        caFile === undefined ? undefined : `  ssl: { ca: readFileSync(${literal(caFile)}), verifyIdentity: true },`,
        '})',
      ),
    },
    {
      name: 'Python',
      text: lines(
        'import pymysql',
        '',
        'connection = pymysql.connect(',
        `    host=${literal(host)},`,
        `    port=${port},`,
        `    user=${literal(user)},`,
        `    password=${literal(password)},`,
        `    database=${literal(database)},`,
        caFile === undefined ? undefined : `    ssl_ca=${literal(caFile)}, ssl_verify_cert=True, ssl_verify_identity=True,`,
        ')',
      ),
    },
    { name: 'JDBC', text: `// MariaDB Connector/J\n${java(url + query(ofJdbc), parts)}` },
    { name: 'Prisma', text: prisma('mysql', 'mysql', parts, ofPrisma) },
  ]
}

/** MongoDB has no JDBC, and Prisma needs a replica set. */
function mongodb({ uri }: ConnectionParts): readonly Sample[] {
  return [
    { name: 'mongosh', text: `mongosh ${word(uri)}` },
    {
      name: 'Node',
      text: lines("import { MongoClient } from 'mongodb'", '', `const client = await MongoClient.connect(${literal(uri)})`),
    },
    { name: 'Python', text: lines('import pymongo', '', `client = pymongo.MongoClient(${literal(uri)})`) },
  ]
}
