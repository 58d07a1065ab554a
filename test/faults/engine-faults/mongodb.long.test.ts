import { engineFaults } from './engine-faults.ts'

engineFaults({ motor: 'mongodb-7.0.2', neighbour: 'postgresql-15.4.0', endsHung: true })
