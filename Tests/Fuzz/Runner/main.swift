import CFuzzer
import FuzzTargets

/// What the command line named, for libFuzzer's callback has no context.
nonisolated(unsafe) var target = FuzzTarget.json

func run() -> Int32 {
    let variable = "PINFOLD_FUZZ_PARSER"
    // The parser of the process that started this one.
    let inherited = getenv(variable).flatMap { FuzzTarget(rawValue: String(cString: $0)) }
    let named = CommandLine.argc > 1 ? FuzzTarget(rawValue: CommandLine.arguments[1]) : nil
    guard let found = named ?? inherited else {
        print("usage: fuzz PARSER [libFuzzer's arguments]")
        print("parsers: \(FuzzTarget.allCases.map(\.rawValue).joined(separator: " "))")
        return 2
    }
    target = found
    var count = CommandLine.argc
    var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = CommandLine.unsafeArgv
    if named != nil {
        // libFuzzer sees the program's name and what follows the parser's; and starts this program
        // again with them where it merges.
        setenv(variable, found.rawValue, 1)
        CommandLine.unsafeArgv[1] = CommandLine.unsafeArgv[0]
        count -= 1
        arguments = CommandLine.unsafeArgv + 1
    }
    return LLVMFuzzerRunDriver(&count, &arguments) { bytes, size in
        let input = Array(UnsafeBufferPointer(start: bytes, count: size))
        do throws(FuzzCheckError) {
            try target.check(input)
        } catch {
            fatalError("\(target.rawValue): \(error)")
        }
        return 0
    }
}

exit(run())
