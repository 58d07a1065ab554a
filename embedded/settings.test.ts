import fc from 'fast-check'
import { expect, test } from 'vitest'
import { S3_RULE } from '../backup/repository/open.ts'
import { parseSettings, type Settings } from './settings.ts'

function settingsOf(argv: readonly string[], env: Record<string, string> = {}): Settings {
  const parsed = parseSettings(argv, env)
  if (!('ok' in parsed)) throw new Error(parsed.text)
  return parsed.ok
}

test('without arguments the settings have the documented defaults', () => {
  expect(settingsOf([])).toEqual({
    dataDir: '.mooring',
    listen: '127.0.0.1',
    sharedPort: 8443,
    dedicatedPort: 8444,
    sharedHttpPort: 8080,
    dedicatedHttpPort: 8081,
    sshPort: 22222,
    httpPort: 28080,
    httpsPort: 28443,
    metricsPort: 9464,
    domain: 'tunnel.localhost',
    issuerAcme: false,
    acmeDirectory: 'https://acme-v02.api.letsencrypt.org/directory',
    acmeAgreeTerms: false,
    acmeAccountKeyVersion: 1,
    acmeRevokeOnDelete: false,
    acmeChallenge: 'http-01',
    acmeNameservers: [],
    acmeCheck: true,
    acmeTsigAlgorithm: 'hmac-sha256',
    compatibleMotors: false,
    engine: [],
    warm: ['postgresql-15.4.0'],
    webhookPrivateAddresses: true,
    serverCapacity: 50,
    mongodbServerCapacity: 10,
    warmPool: 5,
    instanceSizeLimitMib: 1024,
    idleTransactionLimitSeconds: 600,
    statementLimitSeconds: 300,
    quotaInstances: 50,
    quotaDatabases: 5,
    quotaApiTokens: 20,
    quotaTunnels: 50,
    writeRate: 20,
    writeBurst: 40,
    readRate: 100,
    readBurst: 200,
    failedAuthPerMinute: 20,
    issuer: [],
    logLevel: 'info',
  })
})

test.each<{ does: string; argv: string[]; env?: Record<string, string>; gives: Partial<Settings> }>([
  { does: 'a variable sets what no flag sets', argv: [], env: { MOORING_DATA_DIR: '/srv/m' }, gives: { dataDir: '/srv/m' } },
  { does: 'a flag wins over its variable', argv: ['--data-dir', 'a'], env: { MOORING_DATA_DIR: 'b' }, gives: { dataDir: 'a' } },
  { does: 'a flag wins over a wrong variable', argv: ['--ssh-port=1'], env: { MOORING_SSH_PORT: 'x' }, gives: { sshPort: 1 } },
  { does: 'an empty variable counts as unset', argv: [], env: { MOORING_LISTEN: '' }, gives: { listen: '127.0.0.1' } },
  { does: 'auto asks for a free port', argv: ['--shared-port', 'auto'], gives: { sharedPort: 'auto' } },
  { does: 'port 0 means auto', argv: ['--shared-port', '0', '--ssh-port=0'], gives: { sharedPort: 'auto', sshPort: 'auto' } },
  { does: 'a plain HTTP port of 0 is off', argv: ['--shared-http-port', '0'], gives: { sharedHttpPort: 'off' } },
  { does: 'the last of a flag given twice counts', argv: ['--warm-pool=1', '--warm-pool=2'], gives: { warmPool: 2 } },
  {
    does: 'a switch alone is on',
    argv: ['--compatible-motors', '--warm-pool', '0'],
    gives: { compatibleMotors: true, warmPool: 0 },
  },
  {
    does: 'a switch can be turned off against its variable',
    argv: ['--compatible-motors=off'],
    env: { MOORING_COMPATIBLE_MOTORS: 'true' },
    gives: { compatibleMotors: false },
  },
  {
    does: 'a switch reads 1 from its variable',
    argv: [],
    env: { MOORING_COMPATIBLE_MOTORS: '1' },
    gives: { compatibleMotors: true },
  },
  {
    does: 'issuers add up',
    argv: ['--issuer', 'a=https://a.example/x', '--issuer', 'b=http://127.0.0.1:9'],
    gives: {
      issuer: [
        { name: 'a', url: 'https://a.example/x' },
        { name: 'b', url: 'http://127.0.0.1:9' },
      ],
    },
  },
  {
    does: 'issuers of the variable are a list',
    argv: [],
    env: { MOORING_ISSUER: 'a=https://a.example, b=https://b.example' },
    gives: {
      issuer: [
        { name: 'a', url: 'https://a.example' },
        { name: 'b', url: 'https://b.example' },
      ],
    },
  },
  {
    does: 'server programs and warm motors add up',
    argv: [
      ...['--engine', 'mysql-8.0.29=/usr/sbin/mysqld', '--engine', 'mongodb-7.0.2=/opt/mongo/bin/mongod'],
      ...['--engine', 'mysql-5.7.38=docker', '--engine', 'mariadb-10.7.4=docker:registry.example:5000/mariadb:10.7@sha256:0a'],
      ...['--warm', 'mysql-8.0.29', '--warm=postgresql-15.4.0', '--warm', 'mysql-8.0.29'],
    ],
    gives: {
      engine: [
        { motor: 'mysql-8.0.29', source: { program: '/usr/sbin/mysqld' } },
        { motor: 'mongodb-7.0.2', source: { program: '/opt/mongo/bin/mongod' } },
        { motor: 'mysql-5.7.38', source: { image: undefined } },
        { motor: 'mariadb-10.7.4', source: { image: 'registry.example:5000/mariadb:10.7@sha256:0a' } },
      ],
      warm: ['mysql-8.0.29', 'postgresql-15.4.0'],
    },
  },
  { does: 'IPv6 addresses can be listened on', argv: ['--listen', '::1'], gives: { listen: '::1' } },
  { does: 'a public host is a name', argv: ['--public-host', 'My.Example.org'], gives: { publicHost: 'my.example.org' } },
  { does: 'a public host is an address', argv: ['--public-host', '2001:db8::1'], gives: { publicHost: '2001:db8::1' } },
  { does: 'backups go to a directory', argv: ['--backup-dir', '/mnt/share/mooring'], gives: { backupDir: '/mnt/share/mooring' } },
  { does: 'backups go to a bucket', argv: [], env: { MOORING_BACKUP_S3: 's3://b-1/x/y' }, gives: { backupS3: 's3://b-1/x/y' } },
  { does: 'the log format has no default', argv: ['--log-format', 'json'], gives: { logFormat: 'json' } },
  { does: 'variables that are no settings are left alone', argv: [], env: { MOORING_TOKEN: 'x', MOORING_URL: 'y' }, gives: {} },
])('$does', ({ argv, env, gives }) => expect(settingsOf(argv, env)).toMatchObject(gives))

const PORT = 'a port from 1 to 65535, or auto (0 means the same) for a free one'
test.each<{ argv: string[]; env?: Record<string, string>; says: string }>([
  { argv: ['--shared-port', 'x'], says: `--shared-port must be ${PORT}, not "x".` },
  { argv: ['--shared-port', '65536'], says: `--shared-port must be ${PORT}, not "65536".` },
  { argv: ['--shared-port', '-1'], says: `--shared-port must be ${PORT}, not "-1".` },
  { argv: ['--shared-port='], says: `--shared-port must be ${PORT}, not "".` },
  {
    argv: [],
    env: { MOORING_SSH_PORT: '1.5' },
    says: `--ssh-port (MOORING_SSH_PORT in the environment) must be ${PORT}, not "1.5".`,
  },
  {
    argv: ['--acme-directory', 'https://user:pass/@word@ca.example/directory'],
    says: '--acme-directory must be letsencrypt, staging, or an https URL without user, query and fragment, not "https://…@ca.example/directory".',
  },
  { argv: ['--backup-dir='], says: '--backup-dir must be a path, not "".' },
  { argv: ['--backup-s3', '/backups'], says: '--backup-s3 must be s3://bucket or s3://bucket/prefix: a bucket of 3 to 63' },
  {
    argv: ['--backup-s3', 's3://AKIA:a/secret@bucket/x'],
    says: `--backup-s3 must be ${S3_RULE}, not "s3://…@bucket/x".`,
  },
  {
    argv: ['--backup-dir', '/backups', '--backup-s3', 's3://backups'],
    says: '--backup-dir and --backup-s3 exclude each other: give the one that the backups go to.',
  },
  { argv: ['--dedicated-port', '8443'], says: '--dedicated-port must be another port than --shared-port, not 8443 too.' },
  {
    argv: ['--shared-http-port', 'off'],
    says: '--shared-http-port must be a port from 1 to 65535, auto for a free one, or 0 for off',
  },
  { argv: ['--warm', 'mysql'], says: '--warm must be one of the motors mysql-5.7.38, ' },
  ...[
    'mysql-8.0.29',
    'mysql-8.0.29=podman',
    'mysql-8.0.29=docker:',
    'mysql-8=/usr/sbin/mysqld',
    'mysql-8.0.29=/a/b,mysql-8.0.29=/c/d',
  ].map((text) => ({
    argv: ['--engine', text],
    says: '--engine must be motor=program with the path of a server program, such as mysql-8.0.29=/usr/sbin/mysqld',
  })),
  { argv: ['--issuer-acme'], says: '--issuer-acme needs --acme-agree-terms, which accepts the terms of service of the CA.' },
  {
    argv: ['--issuer-acme', '--acme-agree-terms', '--acme-eab-key-id', 'k'],
    says: '--acme-eab-key-id and --acme-eab-key-file need each other.',
  },
  { argv: ['--tls-cert-file', 'a.pem'], says: '--tls-cert-file and --tls-key-file need each other.' },
  {
    argv: ['--tls-cert-file', 'a.pem', '--tls-key-file', 'a.key', '--issuer-acme', '--acme-agree-terms'],
    says: '--tls-cert-file cannot be used with --issuer-acme.',
  },
  {
    argv: ['--acme-challenge', 'x'],
    says: '--acme-challenge must be one of http-01, tls-alpn-01, dns-01, dns-persist-01, not "x".',
  },
  {
    argv: ['--issuer-acme', '--acme-agree-terms', '--acme-challenge', 'dns-01', '--acme-dns-server', 'ns.example'],
    says: '--acme-challenge dns-01 needs --acme-dns-server, --acme-tsig-key-name and --acme-tsig-key-file.',
  },
  {
    argv: ['--issuer-acme', '--acme-agree-terms', '--acme-certificates', 'wildcard'],
    says: '--acme-challenge http-01 cannot be used with --acme-certificates wildcard.',
  },
  {
    argv: ['--issuer-acme', '--acme-agree-terms', '--acme-certificates', 'wildcard', '--acme-challenge', 'tls-alpn-01'],
    says: '--acme-challenge tls-alpn-01 cannot be used with --acme-certificates wildcard.',
  },
  {
    argv: ['--issuer-acme', '--acme-agree-terms', '--acme-challenge', 'dns-persist-01', '--acme-dns-server', 'ns.example'],
    says: '--acme-dns-… and --acme-tsig-… are settings of --acme-challenge dns-01.',
  },
  { argv: ['--acme-dns-server', 'a b'], says: '--acme-dns-server must be a host name or an IP address' },
  {
    argv: ['--acme-directory', 'http://ca.example/dir'],
    says: '--acme-directory must be letsencrypt, staging, or an https URL without user, query',
  },
  { argv: ['--acme-email', 'me'], says: '--acme-email must be an e-mail address, not "me".' },
  { argv: ['--acme-nameservers', 'dns.example'], says: '--acme-nameservers must be IP addresses of DNS servers' },
  { argv: ['--write-rate', '41'], says: '--write-burst must be at least --write-rate, which is 41.' },
  { argv: ['--listen', 'localhost'], says: '--listen must be an IP address' },
  ...[
    '',
    'https://my.example.org',
    'my.example.org:22',
    '0.0.0.0',
    '::',
    '*.example.org',
    '1.2.3',
    'my_host',
    'a..b',
    '-a',
    'a b',
  ].map((host) => ({
    argv: ['--public-host', host],
    says: '--public-host must be a host name such as my.example.org, or an IP address',
  })),
  { argv: ['--domain', 'Tunnel.Example'], says: '--domain must be a domain name in lower case' },
  { argv: ['--domain', `${'a.'.repeat(118)}aa`], says: '--domain must be a domain name' },
  { argv: ['--compatible-motors', 'maybe'], says: '--compatible-motors must be on or off, not "maybe".' },
  { argv: ['--compatible-motors', 'toString'], says: '--compatible-motors must be on or off, not "toString".' },
  {
    argv: ['--log-level', 'loud'],
    says: '--log-level must be one of trace, debug, info, warn, error, fatal, silent, not "loud".',
  },
  { argv: ['--write-rate', '0'], says: '--write-rate must be a whole number from 1 to 1000000, not "0".' },
  { argv: ['--warm-pool', '1e3'], says: '--warm-pool must be a whole number from 0 to 1000, not "1e3".' },
  { argv: ['--data-dir', ''], says: '--data-dir must be a path, not "".' },
  { argv: ['--data-dir', 'a\nb'], says: '--data-dir must be a path without control characters, not "a\\nb".' },
  { argv: ['--issuer', 'a=http://a.example'], says: '--issuer must be name=https://issuer' },
  { argv: ['--issuer', 'system=https://a.example'], says: '--issuer must be name=https://issuer' },
  { argv: ['--issuer', 'https://a.example'], says: '--issuer must be name=https://issuer' },
  { argv: ['--issuer', 'a=https://u:p@a.example'], says: '--issuer must be name=https://issuer' },
  {
    argv: ['--issuer', 'a=https://a.example', '--issuer', 'a=https://b.example'],
    says: '--issuer must be a list with unique names',
  },
  { argv: ['--data-dir'], says: "option '--data-dir <path>' argument missing; npm start -- --help lists every setting." },
  {
    argv: ['--dta-dir', 'x'],
    says: "unknown option '--dta-dir' (Did you mean --data-dir?); npm start -- --help lists every setting.",
  },
  { argv: ['stray'], says: 'too many arguments.' },
])('$argv $env is rejected with one sentence', ({ argv, env = {}, says }) => {
  const parsed = parseSettings(argv, env)
  expect(parsed).toMatchObject({ exit: 2, text: expect.stringContaining(`mooring: ${says}`) as string })
  expect('text' in parsed && parsed.text.split('\n')).toHaveLength(1)
})

test('the message lists all invalid settings', () => {
  const parsed = parseSettings(['--ssh-port', 'x', '--listen', 'y'], { MOORING_WARM_POOL: 'z' })
  expect('text' in parsed && parsed.text.split('\n').map((line) => line.split(' ')[1])).toEqual([
    '--listen',
    '--ssh-port',
    '--warm-pool',
  ])
})

test('the help lists every setting with its variable, and exits with 0', () => {
  const parsed = parseSettings(['--help'], { MOORING_SSH_PORT: 'wrong' })
  expect(parsed).toMatchObject({ exit: 0 })
  const help = 'text' in parsed ? parsed.text : ''
  for (const name of [...Object.keys(settingsOf([])), 'logFormat', 'readyFile', 'publicHost']) {
    const flag = `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
    expect(help).toContain(`${flag} `)
    expect(help).toContain(flag.replace('--', 'MOORING_').replaceAll('-', '_').toUpperCase())
  }
  expect(help).toContain('default 8443')
})

test('any arguments yield settings or a message, never an exception', () => {
  const word = fc.oneof(
    fc.constantFrom('--ssh-port', '--issuer', '--help', '--', '-x', '--compatible-motors', 'auto'),
    fc.string(),
  )
  fc.assert(
    fc.property(fc.array(word, { maxLength: 6 }), fc.string(), (argv, value) => {
      const parsed = parseSettings(argv, { MOORING_DOMAIN: value, MOORING_ISSUER: value })
      return 'ok' in parsed || parsed.text.length > 0
    }),
  )
})
