import Testing

@testable import Gateway
@testable import PinfoldEngine

@Suite("The version of the compiler")
struct SwiftCompilerTests {
    @Test func `is written as the compiler itself writes it`() {
        #expect(SwiftCompiler.text(of: 60301) == "6.3.1")
        #expect(SwiftCompiler.text(of: 60300) == "6.3")
        #expect(SwiftCompiler.text(of: 61012) == "6.10.12")
        #expect(SwiftCompiler.text(of: 0) == "unknown")
    }

    @Test func `is known in every build`() {
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
