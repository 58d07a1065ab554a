// Its tests build on each other:
// @module-tag whole-file
import { killAtEachStep } from './each-step.ts'

killAtEachStep('mysql-8.0.29')
