import { execFile } from 'node:child_process'
import { promisify, stripVTControlCharacters } from 'node:util'
import { MooringError } from '../../shared/errors.ts'

/** Programs that installing an engine uses, and the Debian and Ubuntu package that has each of them. */
const PACKAGES = {
  mvn: 'maven',
  python3: 'python3-pip',
  'apt-get': 'apt',
  'dpkg-deb': 'dpkg',
  unzip: 'unzip',
  tar: 'tar',
  xz: 'xz-utils',
} as const

export type Tool = keyof typeof PACKAGES

interface ToolOptions {
  readonly cwd: string
  /** Variables in addition to those of this process, which may name a proxy. */
  readonly env?: Readonly<Record<string, string>>
}

const MAX_OUTPUT_BYTES = 16 * 1024 * 1024
/** Characters of a program's last line that an error quotes. */
const QUOTED = 300

const execute = promisify(execFile)

/**
 * Runs a program. @returns its standard output
 * @throws MooringError `tool_missing`, `tool_failed` with the last line that it printed
 */
export async function runTool(tool: Tool, args: readonly string[], { cwd, env = {} }: ToolOptions): Promise<string> {
  try {
    const { stdout } = await execute(tool, args, { cwd, env: { ...process.env, ...env }, maxBuffer: MAX_OUTPUT_BYTES })
    return stdout
  } catch (error) {
    if (!(error instanceof Error)) throw error
    if ('code' in error && error.code === 'ENOENT') throw missing(tool)
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
    throw new MooringError('tool_failed', `${tool} failed: ${reasonIn(`${stdout}\n${stderr}`)}`, { cause: error })
  }
}

/** Checks that programs are installed. @throws MooringError `tool_missing` with the packages of all that are not */
export async function requireTools(tools: readonly Tool[]): Promise<void> {
  const absent: Tool[] = []
  for (const tool of tools) {
    const asked = tool === 'python3' ? ['-m', 'pip', '--version'] : [tool === 'unzip' ? '-v' : '--version']
    await execute(tool, asked).catch(() => absent.push(tool))
  }
  if (absent.length > 0) throw missing(...absent)
}

function missing(...tools: readonly Tool[]): MooringError {
  const names = tools.map((tool) => (tool === 'python3' ? 'python3 with pip' : tool)).join(', ')
  const packages = tools.map((tool) => PACKAGES[tool]).join(' ')
  return new MooringError(
    'tool_missing',
    `${names} cannot be run on this machine; install it (Debian and Ubuntu: apt-get install ${packages}), then repeat the command`,
  )
}

/** Returns the first line of a program's output that names an error, else the last line. */
export function reasonIn(output: string): string {
  const lines = stripVTControlCharacters(output).split('\n')
  const printed = lines.map((line) => line.trim()).filter((line) => line !== '')
  const chosen = printed.find((line) => /^(E:|ERROR|\[ERROR\])/.test(line)) ?? printed.at(-1) ?? 'it printed nothing'
  return chosen.slice(0, QUOTED)
}
