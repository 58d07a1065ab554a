// Its tests build on each other:
// @module-tag whole-file
import { killAtEachStep } from './each-step.ts'

killAtEachStep('postgresql-15.4.0')
