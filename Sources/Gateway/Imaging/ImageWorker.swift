import CLinux
import Files
import ImageCodecs

/// The decoding process: the implementation of `pinfold image-worker`.
package enum ImageWorker {
    /// The maximum number of images decoded by one process.
    package static let mostImages = 200

    /// Confines the process, and answers questions on descriptor 0 with answers on 1 until the
    /// other side closes. Returns the exit code.
    ///
    /// - Parameters:
    ///   - memory: how many bytes it may allocate beyond what it has at the start.
    ///   - seconds: wall-clock time for each image, after which the process is ended by SIGALRM.
    package static func run(memory: UInt64, seconds: UInt32) -> Int32 {
        _ = ImageCodecs.load()
        let processorTime = seconds.multipliedReportingOverflow(by: UInt32(mostImages + 1))
        guard
            let confinement = Confinement.ofThisProcess(
                memory: memory, seconds: processorTime.overflow ? .max : processorTime.partialValue)
        else { return 3 }
        guard write(confinement.greeting) else { return 0 }
        while let head = read(WorkerMessage.questionBytes) {
            Confinement.setAlarm(seconds: seconds)
            guard let question = WorkerQuestion(head: head), let image = read(question.count) else {
                return 2
            }
            guard answer(question.plan, image) else { return 0 }
            Confinement.setAlarm(seconds: 0)
        }
        return 0
    }

    private static func answer(_ plan: ImagePlan, _ image: [UInt8]) -> Bool {
        do {
            guard let made = try plan.apply(to: image) else {
                return write(WorkerAnswer.unchanged.head)
            }
            return write(WorkerAnswer.written(made.kind, count: made.bytes.count).head)
                && write(made.bytes)
        } catch {
            return write(WorkerAnswer.failed(error).head)
        }
    }

    /// Exactly `count` bytes, or `nil` if the other side closes before that.
    private static func read(_ count: Int) -> [UInt8]? {
        var isComplete = true
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { memory, written in
            while written < count {
                let result = uninterrupted {
                    CLinux.read(0, memory.baseAddress! + written, count - written)
                }
                guard result > 0 else {
                    isComplete = false
                    return
                }
                written += result
            }
        }
        return isComplete ? bytes : nil
    }

    private static func write(_ bytes: [UInt8]) -> Bool { writeAll(bytes[...], to: 1) == 0 }
}
