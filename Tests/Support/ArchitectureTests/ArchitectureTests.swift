import Testing

/// Lines of the longest file.
private let maximumFileLines = 450
/// Characters of the longest line.
private let maximumLineCharacters = 100

/// Fields of responses that the client reads as one list: by their definitions each is one (RFC
/// 9110 §5.3). The lines of any other field are never joined (`HTTPFields.single(_:)`).
private let joinedFields: Set<String> = [
    ".acceptRanges", ".authenticationInfo", ".contentEncoding", ".vary",
]

@Suite("The rules of the code")
struct ArchitectureTests {
    @Test func `system libraries have no logic`() throws {
        #expect(try Package.files(in: "Sources/C").isEmpty)
    }

    @Test(arguments: ["Sources", "Tests"])
    func `files and lines are short`(folder: String) throws {
        for file in try Package.files(in: folder) {
            #expect(
                file.lines.count - 1 <= maximumFileLines,
                "\(file.path) has \(file.lines.count - 1) lines")
            for (index, line) in file.lines.enumerated() {
                #expect(
                    line.count <= maximumLineCharacters,
                    "\(file.path):\(index + 1) has \(line.count) characters")
            }
        }
    }

    @Test func `nothing in the sources tries with force`() throws {
        // Written in parts, so that this line does not match itself.
        let force = "try" + "!"
        for file in try Package.files(in: "Sources") {
            for (index, line) in file.lines.enumerated() {
                #expect(!line.contains(force), "\(file.path):\(index + 1)")
            }
        }
    }

    /// Foundation's class crashes now and then in a process with many open files (`Command`).
    @Test func `no test starts a program by Foundation`() throws {
        let start = /\bProcess\(\)/
        for file in try Package.files(in: "Tests") {
            for (index, line) in file.lines.enumerated() {
                #expect(line.matches(of: start).isEmpty, "\(file.path):\(index + 1)")
            }
        }
    }

    /// A comparison would count a version that is added later as its opposite.
    @Test func `what follows from a version of HTTP is asked of the version`() throws {
        let comparison = /[=!]= \.http\d|case \.http\d+ =/
        for file in try Package.files(in: "Sources") {
            for (index, line) in file.lines.enumerated() {
                #expect(line.matches(of: comparison).isEmpty, "\(file.path):\(index + 1)")
            }
        }
    }

    @Test func `the client joins the lines of no field but lists`() throws {
        // A subscript getter joins lines, except those of values and of fields.
        let reading = /[fF]ields\[(?!values:|fields:|\d|\.\.)([^\]]*)\](?!\s*=[^=])/
        var joined: Set<String> = []
        for file in try Package.files(in: "Sources")
        where ["PinfoldClient", "Serialization", "pinfold"].contains(file.module) {
            // The fields of the caller's own requests.
            guard !file.path.hasSuffix("/RequestDefaults.swift") else { continue }
            for (index, line) in file.lines.enumerated() {
                for found in line.matches(of: reading) {
                    joined.insert(String(found.1))
                    #expect(
                        joinedFields.contains(String(found.1)),
                        "\(file.path):\(index + 1): \(found.1) may have one value only")
                }
            }
        }
        #expect(joined == joinedFields)
    }

    /// What only one target may do, and the words in a line by which it is recognised.
    @Test(
        arguments: [
            ("Clocks", ["clock_gettime", "gettimeofday", "ContinuousClock", "SuspendingClock"]),
            (
                "Threads",
                ["pthread_create", "pthread_join", "pthread_detach", "lower_own_priority"]
            ),
            // Locks that ThreadSanitizer understands.
            (
                "Locking",
                ["Mutex<", "Mutex(", "pthread_mutex_", "pthread_rwlock_", "pthread_spin_"]
            ),
        ] as [(String, [String])])
    func `clocks, threads and locks each have one target of their own`(
        owner: String, words: [String]
    ) throws {
        for file in try Package.files(in: "Sources") where file.module != owner {
            for (index, line) in file.lines.enumerated() {
                let found = words.first { line.contains($0) }
                #expect(found == nil, "\(file.path):\(index + 1): only \(owner) does that")
            }
        }
    }

    /// What handles requests knows the values of a configuration, not the file.
    @Test func `of the gateway only the process reads the configuration file`() throws {
        let folder = "Sources/Gateway/Gateway/"
        let words = ["ConfigurationLoader", "ConfigNode", "KeyTable", "YAMLDocument"]
        var readers: Set<String> = []
        for file in try Package.files(in: "Sources/Gateway/Gateway") {
            let isReader = file.path.hasPrefix(folder + "ConfigurationFile/")
            for (index, line) in file.lines.enumerated() {
                for word in words where line.contains(word) {
                    if isReader { readers.insert(word) }
                    #expect(
                        isReader || file.path.hasPrefix(folder + "Process/"),
                        "\(file.path):\(index + 1): \(word)")
                }
            }
        }
        #expect(readers == Set(words))
    }

    @Test(
        arguments: [
            ("import Foundation", "Foundation"),
            ("@testable import Gateway", "Gateway"),
            ("internal import CLinux", "CLinux"),
            ("@preconcurrency public import struct Foundation.Data", "Foundation"),
            ("  import CYAML; import CLinux", "CYAML"),
            ("import HTTPCore  // why", "HTTPCore"),
            ("// import Foundation", nil),
            ("/// The importance of import", nil),
            ("let imported = 1", nil),
            ("", nil),
        ] as [(String, String?)])
    func `imports are found in every form`(line: String, module: String?) {
        #expect(SourceFile.importedModule(line) == module)
    }
}
