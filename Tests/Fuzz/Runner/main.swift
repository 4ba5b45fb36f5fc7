import CFuzzer
import FuzzTargets

/// What the command line named, for libFuzzer's callback has no context.
nonisolated(unsafe) var target = FuzzTarget.json

func run() -> Int32 {
    let named = CommandLine.argc > 1 ? CommandLine.arguments[1] : ""
    guard let found = FuzzTarget(rawValue: named) else {
        print("usage: fuzz PARSER [libFuzzer's arguments]")
        print("parsers: \(FuzzTarget.allCases.map(\.rawValue).joined(separator: " "))")
        return 2
    }
    target = found
    // libFuzzer sees the program's name and what follows the parser's.
    var count = CommandLine.argc - 1
    var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? =
        CommandLine.unsafeArgv + 1
    return LLVMFuzzerRunDriver(&count, &arguments) { bytes, size in
        let input = Array(UnsafeBufferPointer(start: bytes, count: size))
        do throws(FuzzFinding) {
            try target.check(input)
        } catch {
            fatalError("\(target.rawValue): \(error)")
        }
        return 0
    }
}

exit(run())
