// Its tests build on each other:
// @module-tag whole-file
import { killAtEachStep } from './each-step.ts'

killAtEachStep('mariadb-10.7.4')
