import { expect, test } from 'vitest'
import type { Motor } from '../../../../crds/motor.ts'
import { binariesFor, type CompatibleMotors } from './binaries.ts'

const rows: readonly { does: string; motor: Motor; compatible: CompatibleMotors; served: string | undefined }[] = [
  { does: 'serves an exact version', motor: 'postgresql-15.4.0', compatible: 'exact', served: 'postgresql-15' },
  { does: 'prefers the exact version', motor: 'postgresql-15.4.0', compatible: 'nearest', served: 'postgresql-15' },
  { does: 'refuses a near version', motor: 'postgresql-14.4.0', compatible: 'exact', served: undefined },
  { does: 'serves a near version when asked', motor: 'postgresql-14.4.0', compatible: 'nearest', served: 'postgresql-14' },
  { does: 'has no MySQL', motor: 'mysql-8.0.29', compatible: 'nearest', served: undefined },
]

test.each(rows)('$does', ({ motor, compatible, served }) => {
  expect(binariesFor(motor, compatible)?.package).toBe(served)
})
