import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { type ConnectionParts, connectionSamples } from './connection-samples.ts'

const run = promisify(execFile)
/** Characters with a meaning in shells, URLs and literals. */
const PASSWORD = `a'b"c\\d%e&f?g$h#i j`
const PARTS = { host: 'db.example.com', port: 5432, user: 'shop', password: PASSWORD, database: 'shop' }
const QUERIES: Readonly<Record<string, string>> = {
  'postgresql-15.4.0': '?sslmode=verify-full&sslrootcert=ca.crt',
  'mysql-8.0.29': '?ssl-mode=VERIFY_IDENTITY&ssl-ca=ca.crt',
  'mongodb-7.0.2': '?tls=true&tlsCAFile=ca.crt',
}

function partsFor(motor: string, hasTls: boolean): ConnectionParts {
  const at = `shop:${encodeURIComponent(PASSWORD)}@db.example.com:5432/shop`
  return { ...PARTS, motor, uri: `${motor.split('-')[0] ?? ''}://${at}${hasTls ? (QUERIES[motor] ?? '') : ''}` }
}

const textOf = (parts: ConnectionParts, name: string): string =>
  connectionSamples(parts).find((sample) => sample.name === name)?.text ?? `no sample ${name}`

/** Literals between double quotes, as JavaScript, Java and Python read them. */
const literalsIn = (text: string): readonly string[] =>
  [...text.matchAll(/"(?:[^"\\]|\\.)*"/g)].map(([literal]) => JSON.parse(literal) as string)

test.each([
  ['postgresql-15.4.0', ['psql', 'Node', 'Python', 'JDBC', 'Prisma']],
  ['mysql-8.0.29', ['mysql', 'Node', 'Python', 'JDBC', 'Prisma']],
  ['mariadb-10.7.4', ['mariadb', 'Node', 'Python', 'JDBC', 'Prisma']],
  ['mongodb-7.0.2', ['mongosh', 'Node', 'Python']],
])('%s has samples for its clients', (motor, names) => {
  expect(connectionSamples(partsFor(motor, true)).map(({ name }) => name)).toEqual(names)
})

test.each([
  ['postgresql-15.4.0', 'psql'],
  ['mysql-8.0.29', 'mysql'],
  ['mongodb-7.0.2', 'mongosh'],
])('a shell passes the password of %s on to %s unchanged', async (motor, client) => {
  const parts = partsFor(motor, true)
  const script = `${client}() { printf '%s\\n' "$MYSQL_PWD" "$@"; }\n${textOf(parts, client)}`
  const { stdout } = await run('sh', ['-c', script])
  expect(stdout.split('\n')).toContain(client === 'mysql' ? PASSWORD : parts.uri)
})

test.each(['postgresql-15.4.0', 'mysql-8.0.29'])(
  'JDBC of %s has user and password outside of its URL, which names the CA',
  (motor) => {
    const [url = '', user, password] = literalsIn(textOf(partsFor(motor, true), 'JDBC'))
    expect([user, password]).toEqual(['shop', PASSWORD])
    expect(url).toMatch(/^jdbc:\w+:\/\/db\.example\.com:5432\/shop\?.*=ca\.crt$/)
  },
)

test.each(['postgresql-15.4.0', 'mysql-8.0.29'])('Prisma of %s reads the password, and the CA from above its schema', (motor) => {
  const [first = ''] = literalsIn(textOf(partsFor(motor, true), 'Prisma'))
  const url = new URL(first)
  expect([decodeURIComponent(url.password), url.searchParams.get('sslcert')]).toEqual([PASSWORD, '../ca.crt'])
  expect(url.searchParams.get('sslaccept')).toBe('strict')
})

test.each(['Node', 'Python'])('%s has the password in a literal, and the CA only with TLS', (name) => {
  for (const motor of Object.keys(QUERIES)) {
    const withTls = literalsIn(textOf(partsFor(motor, true), name)).join('\n')
    expect(withTls.includes(PASSWORD) || withTls.includes(encodeURIComponent(PASSWORD)), motor).toBe(true)
    expect(withTls, motor).toContain('ca.crt')
    expect(textOf(partsFor(motor, false), name), motor).not.toContain('ca.crt')
  }
})
