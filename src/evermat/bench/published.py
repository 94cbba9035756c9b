"""The figures of the papers' tables, in seconds unless a name says otherwise.

Sources: [hu2018] (000), Tables 1 and 2; [motik2015] (001), Table 1; [hu2019] (003),
Tables 1 and 2. Figures that a paper does not report are missing here.
"""

from __future__ import annotations

K, M, G = 1e3, 1e6, 1e9

SMALL_DELETIONS: dict[str, dict[str, float]] = {
    "UOBM-U": {"dred-c": 179.24, "dred": 1185.87, "bf-c": 1.18, "bf": 31.96},
    "UOBM-R": {"dred-c": 0.29, "dred": 0.56, "bf-c": 0.26, "bf": 0.24},
    "Reactome-U": {"dred-c": 0.06, "dred": 1.03, "bf-c": 0.05, "bf": 1.00},
    "Reactome-R": {"dred-c": 26.57, "dred": 62.46, "bf-c": 0.89, "bf": 0.90},
    "Uniprot-R": {"dred-c": 4.31, "dred": 8.71, "bf-c": 4.13, "bf": 4.36},
    "ChemBL-R": {"dred-c": 7.91, "dred": 12.22, "bf-c": 1.27, "bf": 1.26},
    "Claros-LE": {"dred-c": 1143.55, "dred": 1741.66, "bf-c": 560.61, "bf": 653.04},
    "SSPE": {"dred-c": 10.53, "dred": 1684.97, "bf-c": 247.00, "bf": 252.97},
}
"""000, Table 1: average times for deleting 1,000 facts."""

EXTREMES: dict[str, dict[str, tuple[float, float]]] = {
    "Claros-LE": {
        "dred-c": (0.33, 5720.57),
        "dred": (5788.75, 5759.92),
        "bf-c": (0.43, 2802.86),
        "bf": (8.03, 3227.05),
    },
}
"""000, Table 1: the best and the worst of ten samples, as printed."""

SIZES_000: dict[str, tuple[float, int, int, int]] = {
    "UOBM-U": (254.8 * M, 5, 135, 144),
    "UOBM-R": (254.8 * M, 6, 164, 2215),
    "Reactome-U": (12.5 * M, 9, 814, 28),
    "Reactome-R": (12.5 * M, 1, 0, 21385),
    "Uniprot-R": (123.1 * M, 5, 9312, 2706),
    "ChemBL-R": (289.2 * M, 3, 1766, 499),
    "Claros-LE": (18.8 * M, 11, 1031, 306),
    "SSPE": (3.0 * M, 1, 1, 1),
}
"""000, Table 1: explicit facts, strata, nonrecursive rules, recursive rules."""

LARGE_DELETIONS: dict[str, dict[str, float]] = {
    name: dict(
        zip(
            (
                "percent",
                "dred-c",
                "dred",
                "bf-c",
                "bf",
                "remat-0",
                "remat-1",
                "remat-2",
            ),
            figures,
            strict=True,
        )
    )
    for name, figures in {
        "UOBM-U": (50, 1540, 3660, 1640, 3110, 1560, 1600, 1610),
        "UOBM-R": (36, 3280, 5750, 2760, 2870, 4140, 4160, 4190),
        "Reactome-U": (68, 30.70, 6320, 39.16, 6330, 30.90, 31.23, 31.32),
        "Reactome-R": (31, 1070, 1780, 920, 930, 910, 910, 920),
        "Uniprot-R": (47, 1570, 3470, 1920, 2860, 1980, 1990, 2000),
        "ChemBL-R": (69, 4740, 7220, 3250, 4180, 2560, 2570, 2590),
        "Claros-LE": (8, 5010, 17810, 3490, 16740, 3360, 3490, 3600),
        "SSPE": (2, 74.36, 7240, 7900, 7750, 68.28, 70.18, 71.81),
    }.items()
}
"""000, Table 2: the deleted share, and the times."""

WAYS_001 = ("rewrite bf", "rewrite remat", "axioms bf", "axioms remat")

EQUALITY: dict[str, dict[str, tuple[float | None, ...]]] = {
    # |E⁻|: Δ|I≈|, then T and D of the four ways, with Δ|I^A| between them left out
    "UOBM-100-L": {
        "100": (146, 0.6, 0.7 * K, 45.1, 79.3 * M, 4.6, 32.8 * K, 94.6, 361 * M),
        "5k": (7.8 * K, 1.2, 45.8 * K, 42.5, 79.3 * M, 7.1, 805 * K, 93.1, 361 * M),
        "1.3M": (1.9 * M, 18.2, 8.7 * M, 39.2, 75.4 * M, 38.0, 98 * M, 89.5, 361 * M),
        "2.5M": (3.9 * M, 29.9, 15.8 * M, 41.7, 71.5 * M, 54.5, 151 * M, 83.7, 345 * M),
        "3.8M": (5.8 * M, 31.8, 22.3 * M, 37.4, 67.7 * M, 70.9, 188 * M, 79.3, 329 * M),
        "5M": (7.7 * M, 41.2, 28.4 * M, 36.2, 63.8 * M, 73.8, 218 * M, 73.2, 314 * M),
    },
    "UOBM-100-U": {
        "100": (197, 3.5, 21.5 * K, 209, 719 * M, None, None, None, None),
        "1k": (1.8 * K, 277, 581 * M, 219, 719 * M, None, None, None, None),
        "2.5k": (4.3 * K, 338, 584 * M, 209, 719 * M, None, None, None, None),
        "5k": (8.5 * K, 345, 584 * M, 214, 719 * M, None, None, None, None),
    },
    "Claros-L": {
        "100": (209, 8.3, 797 * K, 77.4, 135 * M, 2476, 15.8 * G, 3174, 11 * G),
        "5k": (11.2 * K, 9.1, 895 * K, 77.0, 135 * M, 2609, 15.8 * G, 3166, 11 * G),
        "750k": (1.7 * M, 29.5, 14.5 * M, 80.9, 131 * M, 2816, 17.1 * G, 2690, 9.5 * G),
        "1.5M": (3.5 * M, 46.1, 26.5 * M, 81.5, 127 * M, 2757, 17.4 * G, 1933, 7.3 * G),
        "2.3M": (5.3 * M, 63.9, 38.4 * M, 77.7, 123 * M, 3092, 18.3 * G, 1389, 5.5 * G),
        "3M": (7.2 * M, 78.4, 48.8 * M, 72.4, 119 * M, 3170, 18.6 * G, 1075, 4.4 * G),
    },
    "Claros-LE": {
        "100": (522, 16.1, 617 * K, 4397, 12.6 * G, 5703, 25.8 * G, 8693, 26.3 * G),
        "2.5k": (179 * K, 31.6, 9.9 * M, 4430, 12.6 * G, None, None, None, None),
        "5k": (427 * K, 39.4, 10.7 * M, 4392, 12.6 * G, 5845, 25.8 * G, 9383, 26.3 * G),
        "7.5k": (609 * K, 44.8, 11.6 * M, 4713, 12.6 * G, None, None, None, None),
        "10k": (781 * K, 4300, 12.4 * G, 4627, 12.6 * G, None, None, None, None),
    },
    "DBpedia-L": {
        "100": (105, 0.3, 91, 47.5, 36.6 * M, 8.9, 1.7 * M, 251, 895 * M),
        "5k": (5 * K, 0.4, 24.4 * K, 64.6, 36.6 * M, 20.3, 5.7 * M, 256, 895 * M),
        "1.8M": (1.8 * M, 29.4, 2.1 * M, 48.7, 36.3 * M, 50.0, 72.2 * M, 239, 895 * M),
        "3.5M": (3.6 * M, 38.9, 3.6 * M, 49.0, 35.9 * M, 85.5, 116 * M, 237, 881 * M),
        "5.3M": (5.3 * M, 52.2, 4.9 * M, 54.3, 35.5 * M, 89.8, 152 * M, 232, 866 * M),
        "7M": (7.1 * M, 63.1, 6.2 * M, 50.7, 35.1 * M, 103, 184 * M, 227, 852 * M),
    },
    "UniProt-L": {
        "100": (125, 2.5, 892, 235, 238 * M, 14.3, 6.0 * K, 490, 1.6 * G),
        "5k": (6.1 * K, 3.4, 35 * K, 221, 238 * M, 17.5, 271 * K, 482, 1.6 * G),
        "4.5M": (5.7 * M, 84.0, 24.8 * M, 204, 232 * M, 125, 190 * M, 475, 1.5 * G),
        "9M": (11.5 * M, 137, 46.7 * M, 216, 225 * M, 192, 344 * M, 478, 1.5 * M),
        "13.5M": (17.4 * M, 209, 67.1 * M, 220, 218 * M, 315, 483 * M, 473, 1.4 * G),
        "18M": (23.4 * M, 220, 86.5 * M, 217, 210 * M, 371, 613 * M, 481, 1.4 * G),
    },
    "OpenCyc-L": {
        "100": (5.4 * K, 15.5, 405 * K, 220, 280 * M, 472, 8.5 * M, 3296, 12.9 * G),
        "1k": (53.1 * K, 1062, 69.5 * M, 222, 280 * M, 5537, 2 * G, 3479, 12.9 * G),
        "2.5k": (130 * K, 1078, 69.8 * M, 178, 279 * M, 5339, 2.1 * G, 3621, 12.8 * G),
        "5k": (261 * K, 1123, 70.4 * M, 177, 279 * M, 5475, 2.1 * G, 3334, 12.8 * G),
    },
}
"""001, Table 1, by data set and size of the update."""

SIZES_001: dict[str, tuple[float, int, float, float, float | None, float | None]] = {
    # |E|, |Π|, |I≈|, T≈, |I^A|, T^A
    "UOBM-100-L": (24.5 * M, 210, 46.4 * M, 69, 46.7 * M, 122),
    "UOBM-100-U": (24.5 * M, 279, 78.8 * M, 225, None, None),
    "Claros-L": (18.8 * M, 1300, 79.5 * M, 83, 102 * M, 3900),
    "Claros-LE": (18.8 * M, 1300, 539 * M, 4514, 562 * M, 9048),
    "DBpedia-L": (113 * M, 3400, 136 * M, 49.3, 139 * M, 641),
    "UniProt-L": (123 * M, 451, 179 * M, 118, 229 * M, 527),
    "OpenCyc-L": (2.4 * M, 261_000, 141 * M, 164, 1.2 * G, 3500),
}

MODULES: dict[str, dict[str, float]] = {
    name: dict(
        zip(
            (
                *("explicit", "facts", "strata", "nonrecursive", "recursive"),
                *("TC", "STC", "materialise on", "materialise off"),
                *("delete on", "delete off", "insert on", "insert off"),
                *("delete 25 % on", "delete 25 % off"),
            ),
            figures,
            strict=True,
        )
    )
    for name, figures in {
        "Claros-LE": (
            *(18.8 * M, 533.3 * M, 11, 1031, 306, 27, 2, 733.55, 3593.32),
            *(0.93, 1035.28, 0.17, 0.80, 314.33, 3616.93),
        ),
        "LUBM-LE": (
            *(133.6 * M, 332.6 * M, 5, 85, 22, 1, 2, 291.90, 1100.22),
            *(0.32, 3.87, 0.01, 0.01, 182.93, 1369.77),
        ),
        "DBpedia-SKOS": (
            *(5.0 * M, 97.0 * M, 5, 26, 15, 2, 1, 103.23, 3623.37),
            *(21.77, 691.32, 0.20, 2.78, 111.28, 3826.87),
        ),
        "DAG-R": (
            *(0.1 * M, 22.9 * M, 1, 1, 1, 1, 0, 29.60, 3238.86),
            *(64.92, 3005.11, 14.56, 116.78, 62.48, 4316.71),
        ),
    }.items()
}
"""003, Tables 1 and 2: DRed^c-MOD (on) and DRed^c (off)."""
