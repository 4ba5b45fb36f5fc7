import Clocks
import Locking
import PinfoldConfiguration
import Threads

/// The configuration in force as text, and what its files say by now.
///
/// Files are looked at while somebody asks, on a thread of its own, and not more often than once in
/// ``intervalMilliseconds``. They are read only where their state has changed since they
/// were read the last time: a list of domains can take a second.
package final class ConfigurationLook: Sendable {
    static let intervalMilliseconds: Int64 = 2000
    private static let closeMilliseconds: Int64 = 1000
    /// The most bytes of the text.
    static let maximumTextBytes = 1 << 20

    typealias Files = ConfigurationReport.Files

    private struct State {
        var snapshot: ConfigurationSnapshot
        var generation: UInt64
        /// What the configuration in force was read from.
        var inputs: ConfigurationInputs
        /// Of `generation`.
        var text: ConfigurationReport.Text?
        /// What was found, and when, of the monotonic clock; `nil` if the configuration in force
        /// is another one since.
        var found: (files: Files, moment: Int64)?
        /// In which state the files were read the last time, and what was found in them.
        var read: (inputs: ConfigurationInputs, result: Files.Result)?
    }

    private let state: Locked<State>
    /// Where there is a file; `nil` for the built-in defaults.
    private let file: String?
    private let load: GatewayProcess.Load
    private let thread = ThreadPool(name: "configuration", threads: 1, niceness: 5, limit: 16)

    /// - Parameters:
    ///   - file: the absolute path of the file; `nil` for the built-in defaults.
    ///   - load: reads and checks the files, without putting them in force.
    init(_ loaded: LoadedConfiguration, file: String?, load: @escaping GatewayProcess.Load) {
        self.file = file
        self.load = load
        state = Locked(
            State(snapshot: loaded.snapshot, generation: 1, inputs: loaded.inputs))
    }

    /// Another configuration is in force.
    /// - Parameter inputs: what it was read from; `nil` if only files that it names were read anew.
    func adopt(
        _ snapshot: ConfigurationSnapshot, generation: UInt64, from inputs: ConfigurationInputs?
    ) {
        state.withLock { state in
            state.snapshot = snapshot
            state.generation = generation
            if let inputs { state.inputs = inputs }
            state.text = nil
            state.found = nil
            state.read = nil
        }
    }

    /// Has something done on its thread; returns `false` if too much is waiting.
    func run(_ work: @escaping @Sendable () -> Void) -> Bool { thread.run(work) }

    /// Ends; what is being done is waited for, but not long: files on a network share may hang.
    func close() { thread.close(withinMilliseconds: Self.closeMilliseconds) }

    /// The configuration in force as text. Takes some milliseconds for a thousand host entries, the
    /// first time.
    func text() -> ConfigurationReport.Text {
        let (snapshot, generation, known) = state.withLock {
            ($0.snapshot, $0.generation, $0.text)
        }
        if let known { return known }
        let text = ConfigurationReport.Text(snapshot.maskedYAML(), most: Self.maximumTextBytes)
        state.withLock { if $0.generation == generation { $0.text = text } }
        return text
    }

    /// What the files say; `nil` without a file. May take seconds, while somebody writes them.
    func files() -> Files? {
        guard let file else { return nil }
        let now = Clock.monotonicMilliseconds()
        let before = state.withLock { $0 }
        if let found = before.found, now - found.moment < Self.intervalMilliseconds {
            return found.files
        }
        let present = before.inputs.current()
        let result: Files.Result
        if present == before.inputs {
            result = .unchanged
        } else if let read = before.read, read.inputs.current() == read.inputs {
            result = read.result
        } else {
            result = look(at: file, before)
        }
        let files = Files(
            path: file, looked: Clock.wallMilliseconds(), result: result)
        let moment = Clock.monotonicMilliseconds()
        state.withLock { state in
            guard state.generation == before.generation else { return }
            state.found = (files, moment)
        }
        return files
    }

    /// Reads the files, and remembers in which state they were.
    private func look(at file: String, _ before: State) -> Files.Result {
        var inputs: ConfigurationInputs
        let result: Files.Result
        do throws(ConfigurationErrors) {
            let loaded = try load(before.snapshot.access.lists)
            inputs = loaded.inputs
            let sections = before.snapshot.sectionsThatDiffer(from: loaded.snapshot)
            result =
                sections.isEmpty
                ? .unchanged
                : .changed(
                    sections: sections, warnings: loaded.warnings.map { ConfigurationFinding($0) })
        } catch {
            inputs = error.inputs
            inputs.note(file)
            let problem = ConfigurationFiles.problemReading(file)
            result =
                problem.map { .unreadable($0) }
                ?? .refused(ConfigurationFinding.all(of: error))
        }
        state.withLock { state in
            guard state.generation == before.generation else { return }
            state.read = (inputs, result)
        }
        return result
    }
}

extension ConfigurationFiles {
    /// Why a configuration file cannot be read; `nil` if it can.
    fileprivate static func problemReading(_ path: String) -> String? {
        do throws(ReadError) {
            _ = try read(path, limit: YAMLDocument.maximumBytes)
            return nil
        } catch {
            return error.text
        }
    }
}
