// swift-tools-version: 6.2
import PackageDescription

/// The fuzz targets with libFuzzer. `deploy/fuzz` makes the folder that this is built in: `Sources`
/// there are links to the folders of the repository, so that the product's package knows nothing of
/// it. All of Swift and C++ is instrumented, for coverage and with AddressSanitizer.
let swift: [SwiftSetting] = [
    .swiftLanguageMode(.v6), .unsafeFlags(["-sanitize=fuzzer,address", "-D", "ADDRESS_SANITIZER"]),
]
let cxx: [CXXSetting] = [.unsafeFlags(["-fsanitize=fuzzer-no-link,address"])]

let package = Package(
    name: "pinfold",
    targets: [
        .systemLibrary(name: "CExpat", pkgConfig: "expat"),
        .target(name: "CRapidJSON", cxxSettings: cxx),
        .target(
            name: "Notation",
            swiftSettings: swift + [.enableExperimentalFeature("Lifetimes")]),
        .target(
            name: "Documents", dependencies: ["CExpat", "CRapidJSON", "Notation"],
            swiftSettings: swift),
        .target(name: "FuzzTargets", dependencies: ["Documents"], swiftSettings: swift),
        .systemLibrary(name: "CFuzzer"),
        .executableTarget(
            name: "fuzz", dependencies: ["CFuzzer", "FuzzTargets"],
            swiftSettings: [.swiftLanguageMode(.v6), .unsafeFlags(["-sanitize=address"])],
            linkerSettings: [.unsafeFlags(["-sanitize=address"])]),
    ])
