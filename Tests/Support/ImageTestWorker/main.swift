import CLinux
import Imaging

/// `image-test-worker --memory BYTES --seconds SECONDS`: like `pinfold image-worker`, for tests.
let arguments = CommandLine.arguments
guard arguments.count == 5, let memory = UInt64(arguments[2]), let seconds = UInt32(arguments[4])
else { fatalError("--memory BYTES --seconds SECONDS") }
exit(ImageWorker.run(memory: memory, seconds: seconds))
