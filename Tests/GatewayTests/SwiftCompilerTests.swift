import Testing

@testable import Engine
@testable import Gateway

@Suite("The version of the compiler")
struct SwiftCompilerTests {
    @Test("is written as the compiler itself writes it")
    func text() {
        #expect(SwiftCompiler.text(of: 60301) == "6.3.1")
        #expect(SwiftCompiler.text(of: 60300) == "6.3")
        #expect(SwiftCompiler.text(of: 61012) == "6.10.12")
        #expect(SwiftCompiler.text(of: 0) == "unknown")
    }

    @Test("is known in every build")
    func known() {
        #expect(SwiftCompiler.version != "unknown")
        #if compiler(>=7)
            #expect(!SwiftCompiler.version.hasPrefix("6."))
        #elseif compiler(>=6.4)
            #expect(!SwiftCompiler.version.hasPrefix("6.3"))
        #elseif compiler(>=6.3)
            #expect(SwiftCompiler.version.hasPrefix("6.3"))
        #else
            #expect(SwiftCompiler.version.hasPrefix("6.2"))
        #endif
    }
}
