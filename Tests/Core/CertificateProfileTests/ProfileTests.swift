import Testing

@testable import Trust

@Suite("Which rules count")
struct ProfileTests {
    @Test func `lenient has none, pedantic has all`() {
        for rule in CertificateRule.allCases {
            for (isAnchor, isSystem) in [
                (false, false), (false, true), (true, false), (true, true),
            ] {
                let lenient = AppliedProfile(.lenient, hasSystemAnchor: isSystem)
                let pedantic = AppliedProfile(
                    .pedantic, waivesPresence: true, hasSystemAnchor: isSystem)
                #expect(!lenient.counts(rule, isAnchor: isAnchor))
                #expect(pedantic.counts(rule, isAnchor: isAnchor))
            }
        }
    }

    @Test func `strict leaves the system's roots alone, and authorities what is theirs`() {
        let own = AppliedProfile(.strict)
        let system = AppliedProfile(.strict, hasSystemAnchor: true)
        for rule in CertificateRule.allCases {
            #expect(own.counts(rule, isAnchor: true) == (rule != .keyUsageMissing))
            #expect(!system.counts(rule, isAnchor: true))
            let isLeft = [.keyUsageMissing, .privateSuffixWildcard].contains(rule)
            #expect(system.counts(rule, isAnchor: false) == !isLeft)
        }
    }

    @Test func `the default profile waives what is often left out, and no more`() {
        let profile = AppliedProfile(.strict, waivesPresence: true)
        let waived = CertificateRule.allCases.filter { !profile.counts($0, isAnchor: false) }
        #expect(
            Set(waived) == [
                .keyUsageMissing, .purposeMissing, .authorityKeyMissing, .subjectKeyMissing,
                .sanUnderscore, .privateSuffixWildcard, .unlistedSuffixWildcard,
            ])
    }
}
