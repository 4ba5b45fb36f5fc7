import Clocks
import Locking
import PinfoldConfiguration
import Threads

/// Changed files that are read on a thread of their own, so that neither signals nor a worker wait
/// for them: a list of domains can take a second.
struct FileReading {
    /// How often the main thread looks whether they have been read.
    static let intervalMilliseconds = 20
    /// It yields to the workers.
    private static let niceness: Int32 = 5

    /// The files.
    let change: WatchedFiles.Change
    private let found = Locked<RefreshedConfiguration?>(nil)
    private let thread: Thread

    /// Begins to read.
    ///
    /// - Parameter configuration: the one in force, which names the files.
    init(
        _ change: WatchedFiles.Change, _ configuration: ConfigurationSnapshot
    ) throws(Thread.StartError) {
        self.change = change
        let found = found
        thread = try Thread(name: "files", niceness: Self.niceness) {
            let read = Self.read(change, configuration)
            found.withLock { $0 = read }
        }
    }

    /// What has been read, once; `nil` before that.
    func taken() -> RefreshedConfiguration? { found.withLock { $0.take() } }

    /// Reads the files of a change now.
    static func read(
        _ change: WatchedFiles.Change, _ configuration: ConfigurationSnapshot
    ) -> RefreshedConfiguration {
        configuration.refreshed(reading: change.paths, at: Clock.wallSeconds())
    }
}
