import CLinux
import ImageCodecs
import PinfoldConfiguration
import TestSupport
import Testing
import Transformation

@testable import Imaging

/// The path of the tests' own decoding program: next to the bundle that contains them.
enum TestWorker {
    static func path() throws -> String {
        let bundle = try #require(CommandLine.arguments.first { $0.hasSuffix(".xctest") })
        let folder = bundle.split(separator: "/").dropLast().joined(separator: "/")
        return "/\(folder)/ImageTestWorker"
    }

    /// A service with one process at a time, unless specified otherwise.
    static func service(
        _ change: (inout ImageService.Options) -> Void = { _ in }
    ) throws -> ImageService {
        var options = ImageService.Options()
        options.command = [try path()]
        options.processes = 1
        // Patient: the machine may be busy with other things.
        options.longestWork = 120_000_000_000
        options.longestStart = 120_000_000_000
        options.longestWait = 600_000_000_000
        change(&options)
        return ImageService(options)
    }

    /// A service whose processes are shell commands.
    static func shell(
        _ script: String, _ change: (inout ImageService.Options) -> Void = { _ in }
    ) throws -> ImageService {
        try service { options in
            options.command = ["/bin/sh", "-c", script]
            change(&options)
        }
    }

    /// A shell command that prints the greeting of a confined process.
    static let greeting = #"printf 'PFI1\003\000\000\000'; "#
    /// A shell command that reads a question about an image of this many bytes.
    static func take(_ image: [UInt8]) -> String {
        "head -c \(WorkerMessage.questionBytes + image.count) >/dev/null; "
    }
}

extension ImageService {
    /// How an image is refused; nil: it is not.
    func refusal(of image: [UInt8], by rules: ImageRules = ImageRules()) -> TransformationError? {
        do {
            _ = try transform(image, by: rules)
            return nil
        } catch {
            return error
        }
    }
}

/// Whether this child process exists, including one that has ended and was not waited for.
func isThere(_ pid: pid_t) -> Bool { kill(pid, 0) == 0 }

/// Waits until a condition holds; `false` after a minute.
func becomesTrue(_ condition: () -> Bool) -> Bool {
    for _ in 0..<60_000 {
        if condition() { return true }
        usleep(1000)
    }
    return false
}

func sample(_ name: String) throws -> [UInt8] {
    try Checkout.bytes("Tests/Platform/ImageCodecsTests/Images/\(name)")
}
