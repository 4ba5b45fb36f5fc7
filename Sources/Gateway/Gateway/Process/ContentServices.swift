import Imaging
import Logging
import PinfoldEngine
import Threads

/// What checks and translates content, beside the workers: threads that stand back for them, and
/// the processes that decode images. Neither is started before there is work for it.
final class ContentServices: Sendable {
    let images: ImageService
    private let threads: ThreadPool

    /// Messages whose content waits to be checked or translated.
    private static let mostWaiting = 1024

    init(workers: Int, logger: Logger) {
        var options = ImageService.Options()
        options.note = {
            logger.warning(
                "image processes are confined less than meant", metadata: ["cause": "\($0)"])
        }
        images = ImageService(options)
        threads = ThreadPool(
            name: "transform", threads: workers, niceness: 5, limit: Self.mostWaiting)
    }

    /// The threads' work, and the memory that waits for it.
    var work: TransformationWork {
        TransformationWork { [threads] in threads.run($0) }
    }

    /// Ends; what is under way comes to nothing.
    func close() {
        images.end()
        threads.close()
    }
}
