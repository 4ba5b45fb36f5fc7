import Imaging
import Logging
import PinfoldEngine
import Threads

/// The services that check and translate content, outside the workers: threads with lower priority,
/// and the image decoding processes. Neither is started before there is work for it.
final class ContentServices: Sendable {
    let images: ImageService
    private let threads: ThreadPool

    /// The maximum number of messages whose content waits to be checked or translated.
    private static let mostWaiting = 1024

    init(workers: Int, logger: Logger) {
        var options = ImageService.Options()
        options.note = {
            logger.warning(
                "image decoding processes are not fully confined", metadata: ["cause": "\($0)"])
        }
        images = ImageService(options)
        threads = ThreadPool(
            name: "transform", threads: workers, niceness: 5, limit: Self.mostWaiting)
    }

    /// The threads' work, and the memory for what waits for it.
    var work: TransformationWork {
        TransformationWork { [threads] in threads.run($0) }
    }

    /// Ends the services; work under way is abandoned.
    func close() {
        images.end()
        threads.close()
    }
}
