import CLinux
import Foundation

/// A program that a test starts. It has no descriptors of the test process.
///
/// Foundation's `Process` looks through the test process's descriptors and copies more of each
/// directory entry than there is: with a thousand open files it crashes now and then.
package final class Command {
    package let processIdentifier: pid_t
    private let output: TemporaryFolder?

    /// The program could not be started.
    package struct StartError: Error {
        package let program: String
        package let code: Int32
    }

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - program: a path, or a name that is looked up in PATH.
    ///   - environment: `nil` for that of the test process.
    ///   - folder: where it runs; `nil` for the test process's folder.
    ///   - input: the file that it reads.
    ///   - keepsOutput: whether what it writes is kept for ``wait()``.
    package init(
        _ program: String, _ arguments: [String] = [], environment: [String: String]? = nil,
        in folder: String? = nil, input: String = "/dev/null", keepsOutput: Bool = false
    ) throws {
        output = keepsOutput ? TemporaryFolder() : nil
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, input, O_RDONLY, 0)
        for (descriptor, name) in [(Int32(1), Self.outputName), (2, Self.errorsName)] {
            posix_spawn_file_actions_addopen(
                &actions, descriptor, output?.file(name) ?? "/dev/null",
                O_WRONLY | O_CREAT | O_APPEND, 0o600)
        }
        posix_spawn_file_actions_addclosefrom_np(&actions, 3)
        if let folder { posix_spawn_file_actions_addchdir_np(&actions, folder) }
        // Threads of the test process may block signals.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        let variables = environment ?? ProcessInfo.processInfo.environment
        var identifier: pid_t = 0
        let code = Self.withStrings([program] + arguments) { arguments in
            Self.withStrings(variables.map { "\($0.key)=\($0.value)" }) { variables in
                posix_spawnp(&identifier, program, &actions, &attributes, arguments, variables)
            }
        }
        guard code == 0 else { throw StartError(program: program, code: code) }
        processIdentifier = identifier
    }

    private static let outputName = "output"
    private static let errorsName = "errors"

    private static func withStrings<Result>(
        _ strings: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> Result
    ) -> Result {
        let pointers = strings.map { strdup($0) } + [nil]
        defer { for pointer in pointers { free(pointer) } }
        return body(pointers)
    }

    /// How a program has ended.
    package struct Outcome {
        /// Its status; 128 and the signal's number if a signal ended it.
        package let status: Int32
        /// What it wrote, if that was kept.
        package let output: String
        package let errors: String
    }

    /// Waits until it has ended; to be called once.
    package func wait() -> Outcome {
        var status: Int32 = 0
        while waitpid(processIdentifier, &status, 0) < 0, errno == EINTR {}
        let signal = status & 0x7F
        return Outcome(
            status: signal == 0 ? status >> 8 & 0xFF : 128 + signal,
            output: text(Self.outputName), errors: text(Self.errorsName))
    }

    /// Not by `String(contentsOfFile:)`, which leaks a page for an empty file.
    private func text(_ name: String) -> String {
        guard let path = output?.file(name), let file = FileHandle(forReadingAtPath: path) else {
            return ""
        }
        let content = try? file.readToEnd()
        return String(decoding: content ?? Data(), as: UTF8.self)
    }
}
