equipoise report thyroid.csv --target target --model linear --out thyroid.html
