import { type Motor, MOTORS, partsOf } from '../../crds/motor.ts'
import { type Binaries, candidatesFor } from '../../operator/server/process/programs/binaries.ts'
import { megabytes, nameOf, sizeOf } from './archives.ts'
import { recipeOf } from './recipes.ts'

/** Line of `npm run engines -- list`. */
interface EngineRow {
  readonly motor: Motor
  readonly binaries: Binaries | undefined
  /** Directory of the installed binaries. */
  readonly directory: string | undefined
}

/** Finds what serves each motor. */
export async function engineRows(
  directoryOf: (binaries: Binaries) => Promise<string | undefined>,
): Promise<readonly EngineRow[]> {
  return Promise.all(
    MOTORS.map(async (motor) => {
      const [binaries] = candidatesFor(motor, 'nearest')
      return { motor, binaries, directory: binaries && (await directoryOf(binaries)) }
    }),
  )
}

const HEADINGS = ['MOTOR', 'SERVER', 'INSTALLED', 'FROM'] as const

/** Text of `npm run engines -- list`. Pure. */
export function engineTable(rows: readonly EngineRow[]): string {
  const cells = [HEADINGS, ...rows.map(cellsOf)]
  const widths = HEADINGS.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)))
  const lines = cells.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
  const near = rows.some(({ motor, binaries }) => binaries !== undefined && isNear(motor, binaries))
  return [...lines, ...(near ? ['', '* another version of the motor: served with npm start -- --compatible-motors'] : [])].join(
    '\n',
  )
}

const isNear = (motor: Motor, { version }: Binaries): boolean => partsOf(motor).version !== version

function cellsOf({ motor, binaries, directory }: EngineRow): readonly string[] {
  if (!binaries) return [motor, 'none', 'no', '']
  return [motor, `${binaries.version}${isNear(motor, binaries) ? ' *' : ''}`, directory ?? 'no', originOf(binaries)]
}

function originOf(binaries: Binaries): string {
  const recipe = recipeOf(binaries)
  if (!recipe) return `npm ${binaries.id}, with Mooring`
  return `${nameOf(recipe.archives[0])}, ${megabytes(sizeOf([...recipe.archives, ...recipe.libraries]))}`
}
