// Its tests build on each other:
// @module-tag whole-file
import { killAtEachStep } from './each-step.ts'

killAtEachStep('mongodb-7.0.2')
