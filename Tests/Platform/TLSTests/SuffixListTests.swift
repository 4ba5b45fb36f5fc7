import PinfoldTLS
import Testing
import Trust

@Suite("The list of public suffixes")
struct SuffixListTests {
    @Test(
        arguments: [
            ("com", .listed), ("co.uk", .listed), ("uk", .listed), ("xn--55qx5d.cn", .listed),
            ("anything.ck", .listed), ("github.io", .privateSuffix),
            ("s3.amazonaws.com", .privateSuffix),
            ("example.com", .none), ("example.co.uk", .none), ("user.github.io", .none),
            ("www.ck", .none), ("nosuchdomain", .unlisted), ("example.nosuchdomain", .none),
        ] as [(String, PublicSuffixKind)])
    func `distinguishes registries', companies' and unknown ones`(
        name: String, kind: PublicSuffixKind
    ) {
        #expect(SuffixList().kind(of: name) == kind)
    }
}
