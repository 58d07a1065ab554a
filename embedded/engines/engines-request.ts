import { Command } from 'commander'
import { Motor, MOTORS } from '../../crds/motor.ts'
import { type CommandLine, readFlags } from '../../process/settings.ts'

/** Parsed command line of `npm run engines`. */
export type EnginesRequest =
  { readonly command: 'list' } | { readonly command: 'add' | 'remove'; readonly motors: readonly [Motor, ...Motor[]] }

const PROGRAM = 'npm run engines --'
const DESCRIPTION = `Lists, installs and removes database servers beside PostgreSQL 15.4, which comes with Mooring.

  list               what is installed, by which version, from where
  add <motor>...     installs the servers of motors
  remove <motor>...  removes them; stop Mooring before

The servers are in the directory MOORING_ENGINES_CACHE (default: mooring/engines in the user's cache).
Motors: ${MOTORS.join(', ')}`

const refuse = (problem: string): CommandLine<never> => ({ exit: 2, text: `mooring: ${problem}` })

/** Reads the command line of `npm run engines`. Pure. */
export function parseEnginesRequest(argv: readonly string[]): CommandLine<EnginesRequest> {
  const program = new Command(PROGRAM)
    .usage('list | add <motor>... | remove <motor>...')
    .description(DESCRIPTION)
    .argument('[command]')
    .argument('[motors...]')
  const flags = readFlags(program, argv)
  if ('exit' in flags) return flags
  const [command, ...names] = program.args
  if (command === 'list' && names.length === 0) return { ok: { command } }
  if (command !== 'add' && command !== 'remove') {
    return refuse(`the command must be list, add <motor>... or remove <motor>...; ${PROGRAM} --help explains them.`)
  }
  return motorsOf(command, names)
}

function motorsOf(command: 'add' | 'remove', names: readonly string[]): CommandLine<EnginesRequest> {
  const wrong = names.find((name) => !Motor.safeParse(name).success)
  if (wrong !== undefined) return refuse(`${JSON.stringify(wrong)} is not a motor; the motors are ${MOTORS.join(', ')}.`)
  const [first, ...more] = MOTORS.filter((motor) => names.includes(motor))
  if (first === undefined) return refuse(`${command} needs a motor, such as ${PROGRAM} ${command} mysql-8.0.29.`)
  return { ok: { command, motors: [first, ...more] } }
}
