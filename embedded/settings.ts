import { Command, Option } from 'commander'
import type { z } from 'zod'
import { type CommandLine, nonEmpty, readFlags } from './command-line.ts'
import { Address, Domain, Issuers, ListenPort, oneOf, OptionalPort, Path, Switch, whole } from './setting-rules.ts'

interface Setting<R extends z.ZodType<unknown, string>> {
  readonly rule: R
  /** As in the help: `--data-dir <path>`; in brackets when it may be left out. */
  readonly value: `<${string}>` | `[${string}]`
  readonly about: string
  /** As one would type it; absent when leaving it out means something of its own. */
  readonly initial?: string
}

const setting = <R extends z.ZodType<unknown, string>>(rule: R, value: Setting<R>['value'], about: string) => ({
  rule,
  value,
  about,
})
const withDefault = <R extends z.ZodType<unknown, string>>(
  rule: R,
  value: Setting<R>['value'],
  [initial, about]: [string, string],
) => ({
  rule,
  value,
  about,
  initial,
})

const port = (initial: string, about: string) => withDefault(ListenPort, '<port>', [initial, about])
const optionalPort = (initial: string, about: string) => withDefault(OptionalPort, '<port>', [initial, about])
const count = (range: readonly [number, number], initial: string, about: string) =>
  withDefault(whole(...range), '<n>', [initial, about])

/** Every setting of embedded mode (surface, section 1). `dataDir` is the flag `--data-dir` and the variable `MOORING_DATA_DIR`. */
const SETTINGS = {
  dataDir: withDefault(Path, '<path>', ['.mooring', 'directory of all state']),
  listen: withDefault(Address, '<address>', ['127.0.0.1', 'address that the HTTPS listeners and the databases listen on']),
  sharedPort: port('8443', 'HTTPS port of the shared API'),
  dedicatedPort: port('8444', 'HTTPS port of the dedicated API'),
  sharedHttpPort: optionalPort('8080', 'plain HTTP port of the shared API, loopback only; 0 = off'),
  dedicatedHttpPort: optionalPort('8081', 'plain HTTP port of the dedicated API, loopback only; 0 = off'),
  sshPort: port('22222', 'SSH port of the edge'),
  httpPort: port('28080', 'HTTP port of the edge'),
  httpsPort: port('28443', 'HTTPS port of the edge'),
  metricsPort: port('9464', 'port of the Prometheus metrics, loopback only'),
  domain: withDefault(Domain, '<name>', ['tunnel.localhost', 'domain of the tunnel endpoint']),
  compatibleMotors: withDefault(Switch, '[on|off]', [
    'off',
    'serve a motor whose exact version is missing by the nearest of its series',
  ]),
  serverCapacity: count([1, 20_000], '50', 'shared instances on one database server'),
  warmPool: count([0, 1_000], '5', 'spare databases kept ready on each warm server'),
  instanceSizeLimitMib: count([16, 67_108_864], '1024', 'MiB that a shared instance may grow to before its logins are blocked'),
  statementLimitSeconds: count([1, 86_400], '300', 'seconds after which a statement on a shared server is cancelled'),
  quotaInstances: count([0, 1_000_000], '50', 'shared instances in one namespace'),
  quotaApiTokens: count([0, 1_000_000], '20', 'API tokens in one namespace'),
  writeRate: count([1, 1_000_000], '20', 'writes a second that one caller may make for long'),
  writeBurst: count([1, 1_000_000], '40', 'writes that one caller may make at once'),
  readRate: count([1, 1_000_000], '100', 'reads a second that one caller may make for long'),
  readBurst: count([1, 1_000_000], '200', 'reads that one caller may make at once'),
  failedAuthPerMinute: count([1, 1_000_000], '20', 'failed authentications a minute from one address'),
  issuer: withDefault(Issuers, '<name=url>', ['', 'one more issuer of tokens, keys by OpenID discovery; may be repeated']),
  logLevel: withDefault(oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']), '<level>', [
    'info',
    'least severe log line',
  ]),
  logFormat: setting(oneOf(['pretty', 'json']), '<format>', 'pretty or json; default: pretty on a terminal, else json'),
  readyFile: setting(Path, '<path>', 'file that is written, as JSON, when all is ready; default: none'),
} as const satisfies Readonly<Record<string, Setting<z.ZodType<unknown, string>>>>

type Table = typeof SETTINGS
type Name = keyof Table
/** Parsed settings. Paths are as given: relative ones are relative to the working directory. */
export type Settings = {
  readonly [K in Name]: Table[K] extends { initial: string } ? z.output<Table[K]['rule']> : z.output<Table[K]['rule']> | undefined
}

const names = Object.keys(SETTINGS) as Name[]
const definition = (name: Name): Setting<z.ZodType<unknown, string>> => SETTINGS[name]
const kebab = (name: string): string => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
const flagOf = (name: string): string => `--${kebab(name)}`
const variableOf = (name: string): string => `MOORING_${kebab(name).replaceAll('-', '_').toUpperCase()}`

/**
 * Settings from the arguments after the program's name and the environment; a flag wins over its variable, and an empty variable
 * counts as unset. Pure: reads neither clock nor process.
 */
export function parseSettings(argv: readonly string[], env: Readonly<Record<string, string | undefined>>): CommandLine<Settings> {
  const flags = readFlags<Partial<Record<Name, string>>>(command(), argv)
  if ('exit' in flags) return flags
  const wrong: string[] = []
  const values: Partial<Record<Name, unknown>> = {}
  for (const name of names) {
    const { rule, initial } = definition(name)
    const text = flags.ok[name] ?? nonEmpty(env[variableOf(name)]) ?? initial
    if (text === undefined) continue
    const parsed = rule.safeParse(text)
    if (parsed.success) values[name] = parsed.data
    else wrong.push(sentence(name, parsed.error, { text, flag: flags.ok[name] !== undefined }))
  }
  // Each value came out of the rule that its place in Settings is typed by.
  const settings = values as Settings
  if (wrong.length === 0) wrong.push(...samePorts(settings), ...smallBursts(settings))
  return wrong.length === 0 ? { ok: settings } : { exit: 2, text: wrong.join('\n') }
}

function sentence(name: Name, error: z.ZodError, given: { text: string; flag: boolean }): string {
  const what = given.flag ? flagOf(name) : `${flagOf(name)} (${variableOf(name)} in the environment)`
  return `mooring: ${what} must be ${error.issues[0]?.message ?? 'valid'}, not ${JSON.stringify(given.text)}.`
}

/** Two listeners on one port would fail half-way through the start, with a message that names neither flag. */
function samePorts(settings: Settings): string[] {
  const seen = new Map<unknown, string>()
  const wrong: string[] = []
  for (const name of names.filter((name) => /port$/i.test(name))) {
    const value = settings[name]
    const other = seen.get(value)
    if (typeof value === 'number' && other)
      wrong.push(`mooring: ${flagOf(name)} must be another port than ${other}, not ${value} too.`)
    seen.set(value, flagOf(name))
  }
  return wrong
}

/** The limiter grants the rate first and the rest of the burst on top. */
function smallBursts(settings: Settings): string[] {
  return (['write', 'read'] as const)
    .filter((kind) => settings[`${kind}Burst`] < settings[`${kind}Rate`])
    .map((kind) => `mooring: --${kind}-burst must be at least --${kind}-rate, which is ${settings[`${kind}Rate`]}.`)
}

function command(): Command {
  const program = new Command('npm start --')
    .usage('[settings]')
    .description('Starts Mooring in this one process. Each setting is a flag and, where none is given, an environment variable.')
  for (const name of names) program.addOption(optionOf(name))
  return program
}

function optionOf(name: Name): Option {
  const { value, about, initial } = definition(name)
  const option = new Option(`${flagOf(name)} ${value}`, `${about} (${initial ? `default ${initial}; ` : ''}${variableOf(name)})`)
  if (value.startsWith('[')) option.preset('on')
  if (name === 'issuer') option.argParser((text: string, before: string | undefined) => (before ? `${before} ${text}` : text))
  return option
}
