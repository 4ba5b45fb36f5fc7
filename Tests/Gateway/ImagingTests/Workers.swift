import CLinux
import ImageCodecs
import PinfoldConfiguration
import TestSupport
import Testing
import Transformation

@testable import Imaging

/// Where the tests' own program that decodes is: beside the bundle that holds them.
enum TestWorker {
    static func path() throws -> String {
        let bundle = try #require(CommandLine.arguments.first { $0.hasSuffix(".xctest") })
        let folder = bundle.split(separator: "/").dropLast().joined(separator: "/")
        return "/\(folder)/ImageTestWorker"
    }

    /// A service with one process at a time, unless it is said otherwise.
    static func service(
        _ change: (inout ImageService.Options) -> Void = { _ in }
    ) throws -> ImageService {
        var options = ImageService.Options()
        options.command = [try path()]
        options.processes = 1
        // Patient: the machine may have much else to do.
        options.longestWork = 120_000_000_000
        options.longestStart = 120_000_000_000
        options.longestWait = 600_000_000_000
        change(&options)
        return ImageService(options)
    }

    /// A service whose processes are a shell's commands.
    static func shell(
        _ script: String, _ change: (inout ImageService.Options) -> Void = { _ in }
    ) throws -> ImageService {
        try service { options in
            options.command = ["/bin/sh", "-c", script]
            change(&options)
        }
    }

    /// What a shell prints to greet as a process that is confined does.
    static let greeting = #"printf 'PFI1\003\000\000\000'; "#
    /// What it does to take a question about an image of so many bytes.
    static func take(_ image: [UInt8]) -> String {
        "head -c \(WorkerMessage.questionBytes + image.count) >/dev/null; "
    }
}

extension ImageService {
    /// How an image is refused; nil: it is not.
    func refusal(of image: [UInt8], by rules: ImageRules = ImageRules()) -> TransformationFailure? {
        do {
            _ = try transform(image, by: rules)
            return nil
        } catch {
            return error
        }
    }
}

/// Whether there is such a child of ours, dead ones that nobody has waited for among them.
func isThere(_ pid: pid_t) -> Bool { kill(pid, 0) == 0 }

/// Waits until something is so; false after a minute.
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
